"""The child's half: a pytest session that runs the tests it is told to run. Loaded by file path, so that a package
`harness` of the user's own does not matter."""
