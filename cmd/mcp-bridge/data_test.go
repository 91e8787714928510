package main_test

import (
	"bytes"
	"image/png"
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
