package proxy

import (
	"context"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

type keyKey struct{}

// withKey returns a context whose requests ask for key, a URI or a cursor, and
// are themselves made with none. go-sdk keeps an entry for each key that it sees, for
// as long as the session lives; keys come from sandboxes and servers, without a bound.
func withKey(ctx context.Context, key string) context.Context {
	return context.WithValue(ctx, keyKey{}, key)
}

// uncached puts the key of the context into a request, below the caches of go-sdk.
func uncached(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		key, ok := ctx.Value(keyKey{}).(string)
		place := keyOf(req)
		if !ok || place == nil {
			return next(ctx, method, req)
		}
		*place = key
		defer func() { *place = "" }()
		return next(ctx, method, req)
	}
}

func keyOf(req mcp.Request) *string {
	switch params := req.GetParams().(type) {
	case *mcp.ReadResourceParams:
		return &params.URI
	case *mcp.ListResourcesParams:
		return &params.Cursor
	case *mcp.ListResourceTemplatesParams:
		return &params.Cursor
	case *mcp.ListPromptsParams:
		return &params.Cursor
	}
	return nil
}
