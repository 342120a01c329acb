"""`python -m cudadiag`."""

from cudadiag.cli.main import main

main()
