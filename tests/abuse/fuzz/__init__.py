"""Fuzzing of everything that reads bytes from outside.

parsers.py         the parsers, each as one function of bytes, and the errors it may raise
seeds.py           sound inputs to start from, made by the project itself
mutate.py          deterministic mutations: what the normal test suite runs
__main__.py        python -m tests.abuse.fuzz: coverage-guided, by atheris (make fuzz)
regressions/       inputs that once were handled wrongly, one folder for each parser; replayed by the normal suite
"""
