"""Results of tools as Python values: records, blocks of every kind."""

import copy
import json
import pickle
import unittest

import harness  # noqa: F401  puts mcpbridge on the path
from mcpbridge import values
from mcpbridge.values import Audio, Image, Record

PNG = "iVBORw0="


class Records(unittest.TestCase):
    record = values.parse('{"id": 1, "items": [{"name": "a"}], "keys": 2, "a-b": 3, "class": 4}')

    def test_attributes(self):
        r = self.record
        self.assertEqual((r.id, r["items"][0].name, r["keys"], r["a-b"], getattr(r, "class")), (1, "a", 2, 3, 4))
        self.assertEqual((list(r.keys()), len(r.items())), (["id", "items", "keys", "a-b", "class"], 5))
        self.assertIn("id", dir(r))
        self.assertNotIn("a-b", dir(r))
        self.assertEqual((getattr(r, "none", 7), hasattr(r, "none"), r.get("none")), (7, False, None))
        with self.assertRaises(KeyError):
            r["none"]

    def test_it_is_a_dict(self):
        r = self.record
        self.assertEqual(r, dict(r))
        self.assertEqual(json.loads(json.dumps(r)), r)
        self.assertEqual(repr(r), repr(dict(r)))
        self.assertEqual({**r}["id"], 1)
        match r:
            case {"id": found}:
                self.assertEqual(found, 1)

    def test_copies_stay_records(self):
        r = self.record
        for same in (r.copy(), copy.copy(r), copy.deepcopy(r), pickle.loads(pickle.dumps(r)), r | {}, Record(r)):
            self.assertIs(type(same), Record)
            self.assertIsNot(same, r)
            self.assertEqual(same, r)
            self.assertEqual(same["items"][0].name, "a")
        self.assertEqual((r | {"id": 2}).id, 2)
        with self.assertRaises(TypeError):
            r | 5


class Blocks(unittest.TestCase):
    def of(self, *blocks, **more):
        return values.unwrap(values.parse(json.dumps({"content": list(blocks), **more})), "s", "t")

    def resource(self, **fields):
        return self.of({"type": "resource", "resource": {"uri": "a:b", **fields}})

    def test_embedded_resources(self):
        self.assertEqual(self.resource(text="[1]"), [1], "as text of any block")
        self.assertEqual(self.resource(text="x", mimeType="application/json"), "x")
        self.assertEqual(self.resource(text="7", mimeType="application/json"), 7)
        self.assertEqual(self.resource(text='{"a": {"b": 1}}', mimeType="application/vnd.x+json").a.b, 1)
        self.assertEqual(self.resource(blob="AAE="), b"\0\1")
        image = self.resource(blob=PNG, mimeType="image/png")
        self.assertEqual((type(image), image.mime_type, len(image.data)), (Image, "image/png", 5))
        self.assertIsInstance(self.resource(blob="AAE=", mimeType="audio/wav"), Audio)

    def test_several(self):
        text = {"type": "text", "text": "seen"}
        image = {"type": "image", "data": PNG, "mimeType": "image/png"}
        link = {"type": "resource_link", "uri": "a:b", "name": "n"}
        got = self.of(text, image, link, {"type": "audio", "data": "AAE=", "mimeType": "audio/wav"})
        self.assertEqual([type(v) for v in got], [str, Image, Record, Audio])
        self.assertEqual(got[2].uri, "a:b")
        self.assertEqual(self.of(text, structuredContent={"n": 1}).n, 1)
        got = self.of(text, image, structuredContent={"n": 1})
        self.assertEqual((got[0], type(got[1])), ("seen", Image), "nothing that can be seen is lost to structure")

    def test_media(self):
        image = self.of({"type": "image", "data": PNG, "mimeType": "image/png"})
        for same in (pickle.loads(pickle.dumps(image)), copy.deepcopy(image)):
            self.assertEqual((same.data, same.mime_type), (image.data, "image/png"))


if __name__ == "__main__":
    unittest.main()
