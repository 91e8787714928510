package runtime_test

import (
	"fmt"
	"io"
	"testing"

	"github.com/mcp-bridge/mcp-bridge/runtime"
	"github.com/mcp-bridge/mcp-bridge/runtime/podman"
	"github.com/mcp-bridge/mcp-bridge/runtime/runtimetest"
	sandboximage "github.com/mcp-bridge/mcp-bridge/sandbox-image"
)

// BenchmarkRoundTrip sends 64 bytes there and back, over each transport, beside
// a plain socket pair to a Python that nothing isolates.
func BenchmarkRoundTrip(b *testing.B) {
	fake := func(b *testing.B, transport runtime.Transport) runtime.Engine {
		engine, err := runtimetest.NewFake(shortDir(b), transport)
		if err != nil {
			b.Fatal(err)
		}
		return engine
	}
	inPodman := func(b *testing.B, transport runtime.Transport) runtime.Engine {
		b.Setenv("CONTAINER_HOST", "")
		engine, err := podman.New(podman.Options{RuntimeDir: shortDir(b), Transport: transport})
		if err != nil {
			b.Fatal(err)
		}
		return engine
	}
	for _, way := range []struct {
		name, image string
		open        func(*testing.B, runtime.Transport) runtime.Engine
		transport   runtime.Transport
	}{
		{"socketpair", runtimetest.FakeImage, fake, runtime.TransportFD},
		{"process/stdio", runtimetest.FakeImage, fake, runtime.TransportStdio},
		{"podman/socket", testImage(), inPodman, runtime.TransportSocket},
		{"podman/stdio", testImage(), inPodman, runtime.TransportStdio},
	} {
		b.Run(way.name, func(b *testing.B) {
			engine := way.open(b, way.transport)
			defer engine.Close()
			sandbox, err := engine.Start(b.Context(), runtimetest.Spec(way.image, sandboximage.Seccomp()))
			if err != nil {
				b.Fatal(err)
			}
			defer sandbox.Close()
			const echo = "while True: callback.write(callback.read(64)); callback.flush()"
			if _, err := fmt.Fprintf(sandbox.Control(), "%q\n", echo); err != nil {
				b.Fatal(err)
			}
			message := make([]byte, 64)
			turn := func() {
				if _, err := sandbox.Callback().Write(message); err != nil {
					b.Fatal(err)
				}
				if _, err := io.ReadFull(sandbox.Callback(), message); err != nil {
					b.Fatal(err)
				}
			}
			turn()
			for b.Loop() {
				turn()
			}
		})
	}
}
