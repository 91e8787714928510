package bridge

import "github.com/mcp-bridge/mcp-bridge/proxy"

// handlers answer what the session's cells ask on the callback channel, beside
// what Tools answers: one line for each method, and a file for each subject.
func (s *session) handlers() map[string]proxy.Handler {
	return map[string]proxy.Handler{
		"output/read":  s.readOutput,
		"state/get":    s.stateGet,
		"state/put":    s.statePut,
		"state/delete": s.stateDelete,
		"state/list":   s.stateList,

		"workspace/list":   s.listFiles,
		"workspace/get":    s.getFile,
		"workspace/put":    s.putFile,
		"workspace/delete": s.deleteFiles,

		"kernel/save":    s.kernelSave,
		"kernel/load":    s.kernelLoad,
		"session/reset":  s.sessionReset,
		"session/forget": s.sessionForget,
		"session/info":   s.sessionInfo,
	}
}
