//go:build !linux

package cli

import "github.com/mcp-bridge/mcp-bridge/runtime"

func kernelFinding() runtime.Finding {
	return runtime.Finding{Name: "kernel", Level: runtime.LevelOK, Detail: platform()}
}

func (*root) memoryFindings() []runtime.Finding { return nil }

func (*root) diskFindings() []runtime.Finding { return nil }
