"""The Python end of the wire, against the vectors that the Go end replays too."""

import json
import pathlib
import random
import unittest

import harness
from mcpbridge import supervisor, wire

VECTORS = pathlib.Path(harness.ROOT, "testdata", "wire")


def vectors(name):
    return json.loads(VECTORS.joinpath(name).read_text(encoding="utf-8"))


def decode(pieces):
    """The payloads in pieces, how the stream ended, and what is left of it."""
    decoder = wire.Decoder()
    payloads = []
    try:
        for piece in pieces:
            payloads += decoder.feed(piece)
    except wire.ProtocolError:
        return payloads, "protocol"
    return payloads, "truncated" if decoder._buffer else "eof"


class Frames(unittest.TestCase):
    def test_vectors(self):
        for vector in vectors("frames.json"):
            data = bytes.fromhex(vector["stream"])
            cuts = {"bytes": [data[i : i + 1] for i in range(len(data))]}
            for i in range(len(data) + 1):
                cuts[f"cut at {i}"] = [data[:i], data[i:]]
            for how, pieces in cuts.items():
                with self.subTest(vector["name"], how=how):
                    payloads, end = decode(pieces)
                    self.assertEqual(end, vector["end"])
                    if end != "protocol" or how == "bytes":  # what came along with bad bytes may be lost
                        self.assertEqual([p.decode() for p in payloads], vector["frames"])

    def test_decoder_takes_what_arrives_and_no_more(self):
        decoder = wire.Decoder()
        self.assertEqual(decoder.feed(b"\x04\x00\x00\x00" + b"x" * 1000), [])
        self.assertLess(decoder._buffer.__alloc__(), 1 << 16)

    def test_decoder_limit(self):
        self.assertEqual(wire.Decoder(4).feed(b"\0\0\0\4abcd"), [b"abcd"])
        with self.assertRaises(wire.ProtocolError):
            wire.Decoder(4).feed(b"\0\0\0\5")

    def test_send_vectors(self):
        for vector in vectors("send.json"):
            with self.subTest(vector["name"]):
                params = vector.get("params")
                frame = wire.pack(vector["method"], params and json.loads(params), vector.get("id"))
                self.assertEqual(frame.hex(), vector["stream"])

    def test_too_large(self):
        with self.assertRaisesRegex(wire.FrameTooLarge, "67,108,864"):
            wire.frame(bytes(wire.MAX_FRAME + 1))
        self.assertEqual(len(wire.frame(bytes(wire.MAX_FRAME))), wire.MAX_FRAME + 4)

    def test_what_is_not_json(self):
        for value in (float("nan"), float("inf"), -float("inf")):
            with self.assertRaises(ValueError):
                wire.dumps({"a": value})
        with self.assertRaises(TypeError):
            wire.dumps({"a": object()})

    def test_lone_surrogates_become_escapes(self):
        self.assertEqual(wire.dumps({"a": "ü\ud800"}), b'{"a":"\\u00fc\\ud800"}')


class Fuzz(unittest.TestCase):
    """Mutations of the vectors, as the Go end's FuzzReceive and FuzzEnvelope make them."""

    def setUp(self):
        self.chosen = random.Random(7)

    def mutated(self, data):
        data = bytearray(data)
        for _ in range(self.chosen.randrange(4)):
            at = self.chosen.randrange(len(data) + 1)
            match self.chosen.randrange(4):
                case 0:
                    data[at:at] = self.chosen.randbytes(self.chosen.choice((1, 4, 30)))
                case 1:
                    del data[at : at + self.chosen.choice((1, 4, 30))]
                case 2 if at < len(data):
                    data[at] ^= 1 << self.chosen.randrange(8)
                case 3:
                    data[at:at] = data[self.chosen.randrange(len(data) + 1) :][:50]
        return bytes(data)

    def test_frames(self):
        """However a stream is cut, the same frames come out, and it ends the same way."""
        seeds = [bytes.fromhex(vector["stream"]) for vector in vectors("frames.json")]
        for _ in range(2000):
            data = self.mutated(self.chosen.choice(seeds) + self.chosen.choice(seeds))
            cuts = sorted(self.chosen.randrange(len(data) + 1) for _ in range(3))
            pieces = [data[a:b] for a, b in zip([0, *cuts], [*cuts, len(data)])]
            single, how = decode([data[i : i + 1] for i in range(len(data))])
            for end in (decode(pieces), decode([data])):
                self.assertEqual(end[1], how, data.hex())
                self.assertEqual(end[0], single[: len(end[0])], data.hex())  # what came along with bad bytes may be lost
                if how != "protocol":
                    self.assertEqual(len(end[0]), len(single))
            again, _ = decode([b"".join(wire.frame(payload) for payload in single)])
            self.assertEqual(again, single)

    def test_reports(self):
        """What is taken for a report has its form; all else is refused as one of three errors."""
        report = {"cell": 3, "status": "ok", "value": {"text": "é", "shape": "str"}, "exit": 0, "error": {"type": "E", "message": "", "traceback": "t"}}
        envelopes = vectors("envelopes.json")
        seeds = [wire.pack("done", report)[4:], b'{"jsonrpc":"2.0","method":"noticed","params":{"cell":1}}']
        seeds += [bytes.fromhex(v["hex"]) if "hex" in v else v["payload"].encode() for v in envelopes["good"] + envelopes["bad"]]
        taken = 0
        for _ in range(3000):
            data = self.mutated(self.chosen.choice(seeds[:2] if self.chosen.random() < 0.7 else seeds))
            try:
                method, params = supervisor.parse_report(data)
            except (ValueError, RecursionError, MemoryError):
                continue
            taken += 1
            self.assertIn(method, ("done", "noticed", "swallowed"))
            self.assertEqual(supervisor.checked(params, supervisor.REPORT), params)
            wire.dumps(params)  # it can be passed on
        self.assertGreater(taken, 100)


class Envelopes(unittest.TestCase):
    def test_good(self):
        for vector in vectors("envelopes.json")["good"]:
            with self.subTest(vector["name"]):
                message = wire.loads(vector["payload"].encode())
                want = vector["message"]
                for key in ("id", "method"):
                    self.assertEqual(message.get(key), want.get(key))
                for key in ("params", "result"):
                    self.assertEqual(key in message, key in want)
                    if key in want:
                        self.assertEqual(message[key], json.loads(want[key]))

    def test_bad_reports(self):
        """The one thing that Python reads of somebody it cannot trust is a report."""
        for vector in vectors("envelopes.json")["bad"]:
            payload = bytes.fromhex(vector["hex"]) if "hex" in vector else vector["payload"].encode()
            with self.subTest(vector["name"]):
                try:
                    _, report = supervisor.parse_report(payload)
                except (ValueError, RecursionError):
                    continue
                self.assertLessEqual(report.keys(), supervisor.REPORT.keys())

    def test_report(self):
        report = {"cell": 3, "status": "ok", "value": {"text": "é\ud800", "shape": "str"}, "exit": 0}
        report["images"] = [{"mime": "image/png", "data": "AAAA"}, {"mime": "", "data": "AA=="}]
        report["error"] = {"type": "E", "message": "m", "traceback": "t"}
        self.assertEqual(supervisor.parse_report(wire.pack("done", report)[4:]), ("done", report))

    def test_forged_reports(self):
        forged = [
            "[]", "{}", "null", '{"params": []}', '{"params": {"cell": "1"}}', '{"params": {"cell": true}}',
            '{"params": {"cell": 1e999}}', '{"params": {"cell": 1.0}}', '{"params": {"status": null}}',
            '{"params": {"status": NaN}}', '{"params": {"more": 1}}', '{"params": {"value": "text"}}',
            '{"params": {"value": {"text": 1}}}', '{"params": {"value": {"text": "", "more": ""}}}',
            '{"params": {"images": {}}}', '{"params": {"images": ["AAAA"]}}',
            '{"params": {"images": [{"mime": "a", "data": "AAA"}]}}',
            '{"params": {"images": [{"mime": "a", "data": "AA=A"}]}}',
            '{"params": {"images": [{"mime": "a", "data": "AA\\n="}]}}',
            '{"params": {"error": {"traceback": ["a"]}}}', '{"params": {"exit": 1e2}}',
            '{"params": {"exit": 100000000000000000000}}', '{"params": {"status": ' + "[" * 500 + "]" * 500 + "}}",
            '{"params": {"status": ' + "[" * 100_000, '{"params": {"exit": ' + "9" * 10_000 + "}}", "\xff", "",
        ]  # fmt: skip
        for text in forged:
            with self.subTest(text[:60]):
                with self.assertRaises((ValueError, RecursionError)):
                    supervisor.parse_report(text.replace('{"params"', '{"method": "done", "params"').encode("latin-1"))
        with self.assertRaises(ValueError):
            supervisor.parse_report(b'{"method": "other", "params": {}}')


if __name__ == "__main__":
    unittest.main()
