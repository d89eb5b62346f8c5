"""Artifacts on their way from one machine to another.

    content.py     what a bundle holds, read and written as one value; record signatures travel with it
    choose.py      what one host or target can use
    bundles.py     create, extract, merge, slim
    lock.py        the file that pins exact artifacts
    closure.py     store -> bundle -> store
    documents.py   provenance (in-toto) and bill of materials (CycloneDX) in a bundle
    origin.py      the checkout a recipe comes from
    push.py        bundle -> remote
    pull.py        remote -> store, only what is needed
    sync.py        a folder of bundles and a remote
    remotes/       folders, plain HTTP, S3, OCI registries

Everything that comes in is verified byte by byte and judged by lqcd_aot.trust before a store sees it.
"""
