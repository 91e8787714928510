package main_test

import (
	"bytes"
	"image/png"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// dataImage is what `make image-data` builds.
const dataImage = "localhost/mcp-bridge-sandbox-data:latest"

// TestDataImage works with each package of the data image in a real sandbox.
func TestDataImage(t *testing.T) {
	t.Parallel()
	c := connect(t, setup{args: []string{"--image", dataImage}})
	call := func(code string) *mcp.CallToolResult {
		t.Helper()
		r, err := c.CallTool(t.Context(), &mcp.CallToolParams{Name: "run_python", Arguments: arguments{"code": code, "timeout": 100}})
		if err != nil || r.IsError || len(r.Content) == 0 {
			t.Fatalf("%s: %v %+v", code, err, r)
		}
		return r
	}
	// Three sheets of numbers, as numpy makes them, through a workbook on disk and back.
	call(`
import numpy as np, pandas as pd, openpyxl
x = np.linspace(0, 2 * np.pi, 200)
frame = pd.DataFrame({"x": x, "sin": np.sin(x), "when": pd.date_range("2026-01-01", periods=200, tz="Europe/Berlin").tz_localize(None)})
frame.to_excel("waves.xlsx", index=False, sheet_name="waves")
book = openpyxl.load_workbook("waves.xlsx")
assert book.sheetnames == ["waves"] and book["waves"].max_row == 201
back = pd.read_excel("waves.xlsx")
assert np.allclose(back["sin"], np.sin(x)), back
None, print(len(back))`)
	c.wants(t, "float(round(back['sin'].abs().max(), 2))", "1.0")
	c.wants(t, "from scipy import optimize, stats, integrate\nround(optimize.brentq(np.cos, 1, 2), 6), float(stats.norm.cdf(0)), round(integrate.quad(np.sin, 0, np.pi)[0], 6)",
		"(1.570796, 0.5, 2.0)")
	c.wants(t, "np.linalg.solve(np.eye(200) * 2, np.ones(200)).sum().item()", "100.0")

	r := call(`
import io, matplotlib.pyplot as plt
from PIL import Image
figure, axes = plt.subplots()
axes.plot(frame["x"], frame["sin"], label="sin")
axes.legend()
figure.savefig("wave.png")
picture = Image.open("wave.png").convert("L").resize((320, 240))
print(plt.get_backend(), picture.size, len(picture.getcolors(1 << 16)) > 10)
picture`)
	text := ""
	var image []byte
	for _, content := range r.Content {
		switch block := content.(type) {
		case *mcp.TextContent:
			text += block.Text
		case *mcp.ImageContent:
			image = block.Data
		}
	}
	contains(t, text, "agg (320, 240) True")
	config, err := png.DecodeConfig(bytes.NewReader(image))
	if err != nil || config.Width != 320 || config.Height != 240 {
		t.Errorf("the picture that is shown: %v, %+v", err, config)
	}
}

// TestFigures shows figures where plt.show() is called and at a cell's end, and
// none twice.
func TestFigures(t *testing.T) {
	t.Parallel()
	c := connect(t, setup{args: []string{"--image", dataImage, "--max-timeout=600"}})
	figures := func(code string, count int, text string) []*mcp.ImageContent {
		t.Helper()
		r := c.call(t, arguments{"code": code, "timeout": 600})
		if r.isError || len(r.images) != count {
			t.Fatalf("%s: %d images, want %d: %s", code, len(r.images), count, r.text)
		}
		if r.text != text {
			t.Errorf("%s: got %q, want %q", code, r.text, text)
		}
		for _, shown := range r.images {
			if _, err := png.Decode(bytes.NewReader(shown.Data)); err != nil {
				t.Errorf("%s: %v", code, err)
			}
		}
		return r.images
	}
	two := figures("import matplotlib.pyplot as plt\nplt.plot([1, 2])\nplt.show()\nprint('between')\nplt.bar('ab', [3, 4])\nNone", 2, "[image 1]\nbetween")
	if bytes.Equal(two[0].Data, two[1].Data) {
		t.Error("the second figure is the first one")
	}
	figures("plt.get_fignums()", 0, "[]")
	figures("figure, axes = plt.subplots(); axes.plot([1, 2]); print(1)", 1, "1")
	figures("figure", 1, "")
	figures("import matplotlib; matplotlib.use('Agg')\nplt.plot([1]); plt.show(); plt.show()", 1, "[image 1]")
	large := figures("plt.figure(figsize=(60, 30)); plt.plot([1]); print('large')", 1, "large\n[image 1: scaled down from 6,000 × 3,000 pixels]")
	config, err := png.DecodeConfig(bytes.NewReader(large[0].Data))
	if err != nil || config.Width > 1568 || config.Width < 1000 {
		t.Errorf("%v, %+v", err, config)
	}
	figures("for i in range(10): plt.figure(); plt.plot([i])", 8, "[2 more images not shown: at most 8 and 6 MB a cell]")

	figures("from PIL import Image\nImage.new('CMYK', (4000, 2000))", 1, "[image 1: scaled down from 4,000 × 2,000 pixels to 1,568 × 784]")
	figures("Image.effect_noise((300, 200), 50)", 1, "")
}

// TestTables shows tables by their ends and their columns' types.
func TestTables(t *testing.T) {
	t.Parallel()
	c := connect(t, setup{args: []string{"--image", dataImage, "--max-timeout=600"}})
	call := func(code string, parts ...string) {
		t.Helper()
		r := c.call(t, arguments{"code": code, "timeout": 600})
		contains(t, r.text, parts...)
		if r.isError || len(r.text) > 4000 {
			t.Errorf("%s: error %v, %d bytes", code, r.isError, len(r.text))
		}
	}
	call("import numpy as np, pandas as pd\nframe = pd.DataFrame({'n': range(10_000), 'name': [f'n{i}' for i in range(10_000)], 'x': 0.5})\nframe",
		"9999  9999  n9999  0.5\n[cut: DataFrame of 10,000 rows × 3 columns: n int64, name ", ", x float64; the whole is in _ and out[1].value]", "\n0        0     n0  0.5\n")
	call("frame.head(2)", "1  1   n1  0.5\n[2 rows × 3 columns: n int64, name ")
	call("frame['x']", "[cut: Series of 10,000 float64; ")
	call("pd.DataFrame(np.zeros((100, 1000)))", "DataFrame of 100 rows × 1,000 columns: 0 float64, ", "… 968 more; the whole is in _ ")
	call("pd.DataFrame({'text': ['x' * 100_000] * 3})", "xxx...")
	call("pd.DataFrame({'text': ['x' * 60, 'y']})", "[cut: values of 60 characters and more in a DataFrame of 2 rows × 1 columns: text ")
	call("pd.DataFrame(np.zeros((2, 60)))", "31 float64, … 28 more; the whole is in _ ")
	for code, whole := range map[string]string{
		"pd.DataFrame()":              "Empty DataFrame\nColumns: []\nIndex: []",
		"pd.DataFrame({'a': []})":     "Empty DataFrame\nColumns: [a]\nIndex: []",
		"pd.Series([], dtype=object)": "Series([], dtype: object)",
		"pd.set_option('display.max_rows', 200)\npd.DataFrame({'n': range(100)})":       "\n50  50\n",
		"pd.set_option('display.max_rows', None)\npd.Series(range(300))":                "\n150    150\n",
		"pd.set_option('display.max_colwidth', None)\npd.DataFrame({'t': ['x' * 100]})": strings.Repeat("x", 100),
		"pd.set_option('display.max_columns', None)\npd.DataFrame(np.zeros((1, 25)))":   "  12 ",
	} {
		r := c.call(t, arguments{"code": code, "timeout": 600})
		contains(t, r.text, whole)
		lacks(t, r.text, "[cut", "...")
	}
	call("pd.set_option('display.max_rows', 1)\npd.DataFrame({'n': range(10)})", "[cut: DataFrame of 10 rows × 1 columns: n int64; ")
	call("pd.set_option('display.max_rows', None)\npd.DataFrame({'t': ['x' * 30_000]})", "xxx...", "[cut: values of 60 characters and more in a ")
	call("pd.reset_option('display')\nnp.arange(1_000_000).reshape(1000, 1000)", "[999000, 999001, 999002, ..., 999997, 999998, 999999]]", "[cut: ndarray of shape (1000, 1000), int64; ")
	call("np.eye(2)", "array([[1., 0.],\n       [0., 1.]])")
	call("[frame, np.zeros(10**6), 'x' * 100_000]", "<DataFrame of 10,000 rows × 3 columns: ", "<ndarray of shape (1000000,), float64>", "(100,000 characters)]")
}
