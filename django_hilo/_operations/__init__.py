"""What operators and other programs may do to a counter."""
