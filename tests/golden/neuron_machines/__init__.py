"""Neuron machines as file trees, made from AWS's published tables (trees.py), and the descriptors expected of them (*.jsonl).

python -m tests.golden.neuron_machines     write the descriptors again; look at the difference before committing it
"""
