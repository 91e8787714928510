package discovery_test

import (
	"testing"

	"github.com/mcp-bridge/mcp-bridge/discovery"
)

// workshop is a catalog of servers as people have them, small enough to read.
func workshop() []discovery.IndexedServer {
	return []discovery.IndexedServer{
		indexed("github", "GitHub repositories, issues and pull requests",
			tool("create_issue", "Create an issue in a repository", `"owner":{},"repo":{},"title":{},"body":{},"labels":{}`),
			tool("list_issues", "List the issues of a repository", `"owner":{},"repo":{},"state":{"enum":["open","closed","all"]}`),
			tool("create_pull_request", "Open a pull request", `"head":{},"base":{},"draft":{}`),
			tool("merge_pull_request", "Merge a pull request", `"number":{},"method":{"enum":["squash","rebase"]}`),
			tool("search_code", "Search code over repositories", `"query":{}`),
			tool("get_file_contents", "Get a file of a repository", `"path":{},"ref":{}`),
			tool("fork_repository", "Fork a repository to your account", `"owner":{},"repo":{}`)),
		indexed("disk", "Files of this machine",
			tool("read_file", "Read a text file", `"path":{}`),
			tool("write_file", "Write text to a file, which is created if there is none", `"path":{},"content":{}`),
			tool("list_directory", "Show what is in a directory", `"path":{}`),
			tool("move_file", "Move or rename a file", `"source":{},"destination":{}`),
			tool("delete_file", "Delete a file for good", `"path":{}`),
			tool("file_info", "Size, owner and times of a file", `"path":{}`)),
		indexed("slack", "Messages of a team",
			tool("post_message", "Post a message to a channel", `"channel":{},"text":{}`),
			tool("list_channels", "List the channels", `"cursor":{}`),
			tool("add_reaction", "React to a message with an emoji", `"emoji":{},"timestamp":{}`),
			tool("get_thread_replies", "Read the replies to a message", `"thread":{}`)),
		indexed("calendar", "Appointments",
			tool("createEvent", "Put an event into the calendar", `"start":{},"end":{},"attendees":{}`),
			tool("listEvents", "Events between two dates", `"from":{},"to":{}`),
			tool("findFreeTime", "When everybody is free", `"attendees":{},"minutes":{}`)),
		indexed("mail", "Electronic post",
			tool("send_email", "Send an e-mail", `"to":{},"subject":{},"body":{}`),
			tool("search_inbox", "Find mails by sender, subject or words", `"query":{}`)),
		indexed("maps", "Places and ways between them",
			tool("geocode", "Coordinates of an address or a place", `"address":{}`),
			tool("directions", "The way from one place to another", `"origin":{},"destination":{},"mode":{"enum":["walking","driving","transit"]}`),
			tool("places_nearby", "Shops, restaurants and sights near a place", `"latitude":{},"longitude":{},"radius":{}`)),
		indexed("weather", "Weather of the whole world",
			tool("current_weather", "The weather at a place now", `"city":{}`),
			tool("forecast", "The weather of the next days", `"city":{},"days":{},"units":{"enum":["metric","imperial"]}`)),
		indexed("postgres", "A PostgreSQL database",
			tool("query", "Run a read-only SQL statement", `"sql":{}`),
			tool("list_tables", "The tables of the database", `"schema":{}`),
			tool("describe_table", "Columns of a table", `"table":{}`)),
		indexed("browser", "A web browser that is driven from outside",
			tool("navigate", "Open a page", `"url":{}`),
			tool("click", "Click on something in the page", `"selector":{}`),
			tool("screenshot", "Take a picture of the page", `"full_page":{}`),
			tool("get_text", "The text that a page shows", `"selector":{}`)),
		indexed("calc", "", tool("calculate", "Evaluate an arithmetic expression", `"expression":{}`)),
		indexed("clock", "", tool("get_current_time", "The date and the time now", `"timezone":{}`)),
		indexed("stocks", "Prices of shares",
			tool("get_quote", "The price of a share now", `"symbol":{}`),
			tool("get_history", "Prices of a share over a time", `"symbol":{},"from":{},"to":{}`)),
		indexed("search", "Search engine", tool("web_search", "Search the web", `"query":{},"count":{}`)),
		indexed("redian", "热点新闻", tool("get-hot-news", "获取新闻热榜，包含财经、科技、体育", ``), tool("get-recipes", "查询菜谱", `"name":{}`)),
		indexed("office", "Word documents",
			tool("new_document", "Start an empty Word document", `"filename":{}`),
			tool("add_paragraph", "Add a paragraph to a Word document", `"filename":{},"text":{}`),
			tool("read_document", "All the text of a Word document", `"filename":{}`)),
	}
}

// A judgedQuery is a request and the tools that have to be among the first ones.
type judgedQuery struct {
	text string
	want []string
}

// TestSearchQuality holds what searching finds in a catalog of our own: words,
// slips, parameters and steps within five, whole tasks within eight.
func TestSearchQuality(t *testing.T) {
	servers := workshop()
	ix := discovery.NewIndex(servers)
	for _, group := range []struct {
		name    string
		within  int
		least   float64
		queries []judgedQuery
	}{
		{"steps", 5, 0.95, []judgedQuery{
			{"file a bug", []string{"github.create_issue"}},
			{"open a PR", []string{"github.create_pull_request"}},
			{"what is in this folder", []string{"disk.list_directory"}},
			{"rename a file", []string{"disk.move_file"}},
			{"erase a file", []string{"disk.delete_file"}},
			{"notify the team in a channel", []string{"slack.post_message"}},
			{"set up a meeting", []string{"calendar.createEvent"}},
			{"write to somebody by email", []string{"mail.send_email"}},
			{"turn an address into latitude and longitude", []string{"maps.geocode"}},
			{"find a restaurant close to my hotel", []string{"maps.places_nearby"}},
			{"will it rain tomorrow", []string{"weather.forecast"}},
			{"run SQL", []string{"postgres.query"}},
			{"visit a website", []string{"browser.navigate"}},
			{"share price", []string{"stocks.get_quote"}},
			{"work out a sum", []string{"calc.calculate"}},
			{"hot news", []string{"redian.get-hot-news"}},
			{"recipe", []string{"redian.get-recipes"}},
			{"squash", []string{"github.merge_pull_request"}},
			{"imperial units", []string{"weather.forecast"}},
		}},
		{"tasks", 8, 0.8, []judgedQuery{
			{
				"Find out what Nvidia's stock costs today, work out what 12.5 of them are worth, and write that into /root/notes/shares.md for me.",
				[]string{"stocks.get_quote", "calc.calculate", "disk.write_file"},
			},
			{
				"I'm planning a trip to Lisbon next week: where is the hotel at Rua Augusta 12, what can we see nearby, and how will the weather be?",
				[]string{"maps.geocode", "maps.places_nearby", "weather.forecast"},
			},
			{
				"Please read /home/me/report.docx, mail a summary of it to my boss, and put a meeting about it into my calendar for tomorrow.",
				[]string{"office.read_document", "mail.send_email", "calendar.createEvent"},
			},
		}},
	} {
		sum := 0.0
		for _, q := range group.queries {
			found := top(ix.Search(q.text, group.within), group.within)
			got := share(q.want, found, group.within)
			if sum += got; got < 1 {
				t.Logf("%s: %q: %q, want %q", group.name, q.text, found, q.want)
			}
		}
		if got := sum / float64(len(group.queries)); got < group.least {
			t.Errorf("%s: recall %.2f, want at least %.2f", group.name, got, group.least)
		}
	}
	for kind, r := range measure(func(text string) []string { return toolNames(ix.Search(text, 8).Hits) }, madeUpQueries(servers, 20)) {
		if got := r.at5 / r.queries; got < 0.95 {
			t.Errorf("made-up queries, %s: recall@5 %.2f, want at least 0.95", kind, got)
		}
	}
}
