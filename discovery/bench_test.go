package discovery_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/mcp-bridge/mcp-bridge/discovery"
)

// synthetic makes servers with n tools in all, 25 a server, whose vocabulary
// grows with them.
func synthetic(n int) []discovery.IndexedServer {
	verbs := strings.Fields("create list get delete update search send read write run convert compare upload merge close open")
	things := strings.Fields("issue file message repository branch comment user page table chart note event task order invoice " +
		"image ticket channel query node report template label release package container")
	var servers []discovery.IndexedServer
	for s := 0; s*25 < n; s++ {
		var tools []discovery.Tool
		for i := range min(25, n-s*25) {
			k := s*25 + i
			verb, thing := verbs[k%len(verbs)], things[(k/7)%len(things)]
			tools = append(tools, tool(fmt.Sprintf("%s_%s_%s", verb, thing, invented(k)),
				fmt.Sprintf("%s the %s of a %s with the given %s. Returns what the service %s answered.", verb, thing, invented(k/3), things[k%len(things)], invented(s)),
				fmt.Sprintf(`"%s_id":{"type":"string","description":"which %s"},"max_results":{"type":"integer","default":10},"%s":{"type":"string"}`, thing, thing, invented(k/11))))
		}
		servers = append(servers, indexed("server-"+invented(s), "The "+invented(s)+" service", tools...))
	}
	return servers
}

// invented returns a pronounceable word for a number.
func invented(n int) string {
	const consonants, vowels = "bdfgklmnprstvz", "aeiou"
	var b strings.Builder
	for n += 500; n > 0; n /= 70 {
		b.WriteByte(consonants[n%14])
		b.WriteByte(vowels[n/14%5])
	}
	return b.String()
}

func benchmarkSearch(b *testing.B, n int) {
	ix := discovery.NewIndex(synthetic(n))
	queries := []string{
		"create issue", "list the files of a repository", "send a mesage to a chanel", "crt isue tmplate", "delete",
		"I need to read the report about invoices, convert it to a chart and upload it with a short comment for the team",
		"server-" + invented(3) + " search", "qzxwv wxqzj",
	}
	for _, q := range queries[:7] {
		if len(ix.Search(q, 8).Hits) == 0 {
			b.Fatalf("nothing found for %q", q)
		}
	}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		ix.Search(queries[i%len(queries)], 8)
	}
}

func BenchmarkSearch500(b *testing.B)   { benchmarkSearch(b, 500) }
func BenchmarkSearch10000(b *testing.B) { benchmarkSearch(b, 10_000) }

func BenchmarkNewIndex10000(b *testing.B) {
	servers := synthetic(10_000)
	for b.Loop() {
		discovery.NewIndex(servers)
	}
}

func BenchmarkDocument(b *testing.B) {
	tools := []discovery.Tool{tool("create_issue", "Create an issue in a repository.", `"title":{"type":"string"},
		"labels":{"type":"array","items":{"type":"string"}},"state":{"enum":["open","closed"]}`)}
	for b.Loop() {
		discovery.Document(discovery.Server{Name: "github"}, tools)
	}
}
