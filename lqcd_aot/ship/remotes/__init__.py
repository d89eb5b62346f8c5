"""Places that keep bundles for others: one small interface, five kinds.

    base.py       the interface; bounded, resumed, verified reading
    shelf.py      a bundle as content-addressed objects, and the reference that names them
    locate.py     from a URL to a remote
    folder.py     file:///path        a folder; served by any web server it is a plain HTTP remote
    http.py       http(s)://          read only, standard library
    s3.py         s3://bucket/prefix  through obstore, with conditional puts
    oci.py        the OCI manifests that stand for a bundle
    layout.py     oci-layout:///path  an OCI image layout
    registry.py   oci://host/repo     an OCI registry, through oras

    blobs/sha256/ab/abcd..   immutable bytes; never written twice
    refs/<name>.json         names a manifest and its objects; written last, and only where it did not exist or on demand

Objects come before the reference that names them, so a push killed anywhere leaves the old state, the new one, or objects that
nobody names. Nothing a remote says is believed: what is read is compared with digests that a signed manifest leads to.
"""
