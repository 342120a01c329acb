"""The controller: asks what to run next, has it run, judges it, writes it down, and asks again."""
