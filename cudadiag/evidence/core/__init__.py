"""A reader of GPU core files in plain Python: no GPU, no toolkit, only pyelftools."""
