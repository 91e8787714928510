package bridge

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// A Mode is the form in which a client gets results.
type Mode string

const (
	// ModeCompact is text as a notebook shows it, and nothing else: some clients
	// drop images where there is structured content.
	ModeCompact Mode = "compact"
	// ModeJSON is structured content, and the same as text.
	ModeJSON Mode = "json"
)

// ParseMode returns the mode of that name. The empty name is ModeCompact.
func ParseMode(name string) (Mode, error) {
	switch name {
	case "", string(ModeCompact):
		return ModeCompact, nil
	case string(ModeJSON):
		return ModeJSON, nil
	case "toon":
		return "", errors.New("toon is not supported: no maintained Go library writes it; use json, or compact, which is the shortest")
	}
	return "", fmt.Errorf("%q is not a mode: compact or json", name)
}

// details are a result in its parts.
type details struct {
	Status    string          `json:"status"` // ok, error, exit, timeout, interrupted, lost, running, or refused if no cell was run
	Cell      int             `json:"cell,omitempty"`
	Output    string          `json:"output,omitempty"`
	Value     json.RawMessage `json:"value,omitempty"`      // of the last expression, if it is JSON
	ValueText string          `json:"value_text,omitempty"` // its repr, if it is not
	Error     *errorDetails   `json:"error,omitempty"`
	ExitCode  int             `json:"exit_code,omitempty"`
	Truncated bool            `json:"truncated,omitempty"` // output or value are not whole
	Images    int             `json:"images,omitempty"`
	Notes     []string        `json:"notes,omitempty"`
	Session   string          `json:"session,omitempty"` // to go on with, if the client did not name one
}

type errorDetails struct {
	Type      string `json:"type,omitempty"`
	Message   string `json:"message"`
	Traceback string `json:"traceback,omitempty"`
}

// failed sets what is wrong, and returns it.
func (r *Result) failed(status, text string) string {
	r.details.Status, r.details.Error = status, &errorDetails{Message: text}
	return text
}

func interruptedStatus(why string) string {
	if why == "timeout" {
		return why
	}
	return "interrupted"
}

// setValue sets the value, shown as text of at most limit characters.
func (d *details) setValue(v *valueReport, shown string, limit int) {
	if v.JSON != "" && len(v.JSON) <= 4*limit && json.Valid([]byte(v.JSON)) {
		d.Value = json.RawMessage(v.JSON)
		return
	}
	d.ValueText = shown
	d.Truncated = d.Truncated || v.Shape != "" || shown != v.Text
}

func (d *details) setError(e *errorReport, traceback string) {
	d.Status = "error"
	d.Error = &errorDetails{Type: note(e.Type), Message: shorten(e.Message, 2000, "the exception"), Traceback: traceback}
}

// toolResult is a result in the form that the client gets.
func (b *Bridge) toolResult(r Result) *mcp.CallToolResult {
	result := &mcp.CallToolResult{IsError: r.IsError}
	if b.opts.OutputMode == ModeJSON {
		result.StructuredContent = r.structured()
		r.Text = string(r.structured())
	}
	if r.Text != "" {
		result.Content = append(result.Content, &mcp.TextContent{Text: r.Text})
	}
	for _, image := range r.Images {
		result.Content = append(result.Content, &mcp.ImageContent{MIMEType: image.MIMEType, Data: image.Data})
	}
	return result
}

// structured is a result as JSON.
func (r *Result) structured() json.RawMessage {
	d := r.details
	d.Images = len(r.Images)
	if d.Status == "" {
		d.Status, d.Error = "refused", &errorDetails{Message: r.Text}
		if !r.IsError {
			d.Status, d.Error, d.Notes = "ok", nil, []string{r.Text}
		}
	}
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false) // models read it
	if err := encoder.Encode(d); err != nil {
		return mustJSON(details{Status: d.Status, Error: &errorDetails{Message: r.Text}})
	}
	return bytes.TrimSpace(b.Bytes())
}
