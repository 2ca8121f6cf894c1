"""Philox4x64-10 in plain Python integers, from its definition: the literal algorithms draw from it."""

WORD = 2**64


def philox(counter, key):
    c, k = list(counter), list(key)
    for _ in range(10):
        p0, p1 = 0xD2E7470EE14C6C93 * c[0], 0xCA5A826395121157 * c[2]
        c = [p1 // WORD ^ c[1] ^ k[0], p1 % WORD, p0 // WORD ^ c[3] ^ k[1], p0 % WORD]
        k = [(k[0] + 0x9E3779B97F4A7C15) % WORD, (k[1] + 0xBB67AE8584CAA73B) % WORD]
    return c


def uniform(key, t, i):
    return (philox([t, i // 4, 0, 0], [key, 0])[i % 4] >> 11) / 2**53
