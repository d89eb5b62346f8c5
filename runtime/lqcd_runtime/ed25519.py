"""Ed25519 verification with integers alone, so that a signature can be checked where nothing but Python is installed.

Owns the check; makes no signatures (secret keys need constant-time code, which the build side takes from `cryptography`). Where
that library is importable it does the arithmetic here too, fifty times faster. Both answer alike (tests/contracts/test_trust.py).
Strict: S < L, and y < p in the public key. Source: RFC 8032, sections 5.1.3, 5.1.4, 5.1.7 (the equation without cofactor).

    -x^2 + y^2 = 1 + d x^2 y^2 over GF(2^255 - 19);  accept if [S]B - [k]A encodes to R, with k = SHA-512(R, A, message) mod L
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    Point = tuple[int, int, int, int]  # x = X/Z, y = Y/Z, xy = T/Z

P = 2**255 - 19
ORDER = 2**252 + 27742317777372353535851937790883648493
D = -121665 * pow(121666, -1, P) % P
_ROOT_OF_MINUS_ONE = pow(2, (P - 1) // 4, P)
_NEUTRAL = (0, 1, 1, 0)


def verify(public_key: bytes, signature: bytes, message: bytes) -> bool:
    """Whether `signature` (64 bytes) is one of `message` under `public_key` (32 bytes). Wrong lengths are a no."""
    if len(public_key) != 32 or len(signature) != 64:
        return False
    if int.from_bytes(signature[32:], "little") >= ORDER or int.from_bytes(public_key, "little") % 2**255 >= P:
        return False
    try:
        from cryptography.exceptions import InvalidSignature
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
    except ImportError:
        return verify_with_integers(public_key, signature, message)
    try:
        Ed25519PublicKey.from_public_bytes(public_key).verify(signature, message)
    except InvalidSignature:
        return False
    return True


def verify_with_integers(public_key: bytes, signature: bytes, message: bytes) -> bool:
    """The same without any library; a few milliseconds."""
    import hashlib

    a, s = _decode(public_key), int.from_bytes(signature[32:], "little")
    if a is None or s >= ORDER:
        return False
    k = int.from_bytes(hashlib.sha512(signature[:32] + public_key + message).digest(), "little") % ORDER
    minus_a = (P - a[0], a[1], a[2], P - a[3])
    return _encode(_two_multiples(s, _base(), k, minus_a)) == signature[:32]


def _base() -> Point:
    # y = 4/5, x even.
    point = _decode((4 * pow(5, -1, P) % P).to_bytes(32, "little"))
    assert point is not None
    return point


def _decode(data: bytes) -> Point | None:
    """The point of 32 bytes, None where there is none."""
    number = int.from_bytes(data, "little")
    odd, y = number >> 255, number & (2**255 - 1)
    if y >= P:
        return None
    u, v = (y * y - 1) % P, (D * y * y + 1) % P
    # A square root of u/v in one exponentiation (RFC 8032, 5.1.3).
    x = u * pow(v, 3, P) * pow(u * pow(v, 7, P), (P - 5) // 8, P) % P
    if v * x * x % P == -u % P:
        x = x * _ROOT_OF_MINUS_ONE % P
    if v * x * x % P != u or (x == 0 and odd):
        return None
    if x & 1 != odd:
        x = P - x
    return x, y, 1, x * y % P


def _encode(point: Point) -> bytes:
    x, y, z, _ = point
    inverse = pow(z, -1, P)
    return (y * inverse % P | (x * inverse % P & 1) << 255).to_bytes(32, "little")


def _add(p: Point, q: Point) -> Point:
    """The complete addition of RFC 8032, 5.1.4; it also doubles."""
    a, b = (p[1] - p[0]) * (q[1] - q[0]) % P, (p[1] + p[0]) * (q[1] + q[0]) % P
    c, d = 2 * p[3] * q[3] * D % P, 2 * p[2] * q[2] % P
    e, f, g, h = b - a, d - c, d + c, b + a
    return e * f % P, g * h % P, f * g % P, e * h % P


def _two_multiples(s: int, p: Point, k: int, q: Point) -> Point:
    """[s]p + [k]q, one doubling per bit for both."""
    table = (_NEUTRAL, p, q, _add(p, q))
    out = _NEUTRAL
    for bit in range(max(s.bit_length(), k.bit_length()) - 1, -1, -1):
        out = _add(out, out)
        which = (s >> bit & 1) | (k >> bit & 1) << 1
        if which:
            out = _add(out, table[which])
    return out
