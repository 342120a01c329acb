"""The command line: a table of commands, each in a file of its own and imported only when it is called."""
