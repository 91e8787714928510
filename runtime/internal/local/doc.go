// Package local is what every engine on this very machine needs from it: the
// sandbox's directory and socket, who owns a sandbox and whether that process
// still lives, and the facts that the kernel tells about a running process.
//
// It knows no engine. On other systems than Linux there is only what is needed
// for sandboxes elsewhere.
package local
