"""What the user can do something about."""


class Problem(Exception):
    """One sentence that says what is wrong and what to do. Ends the program with exit code 2."""


class Stopped(Exception):
    """The user wants to stop; everything that is needed to go on has been written. Ends the program with exit code 130."""
