"""What a text must match: a regular expression, or a JSON schema."""

from .constraint import TextConstraint as TextConstraint
