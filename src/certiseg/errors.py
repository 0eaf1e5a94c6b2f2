"""The one exception for input that cannot be used; its text is the whole message a user sees."""


class InputError(ValueError):
    """Input that breaks a rule: `<argument> must <rule>, got <value>; <what to do>`."""
