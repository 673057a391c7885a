"""Operations on counters for operators and other programs."""
