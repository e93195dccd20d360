"""What was asked and answered, as data, as words and as a folder."""
