package discovery

import "strings"

// fieldWords are words that the names of fields are made of, as APIs use them.
const fieldWords = "about accept access account action active actor added additional address admin age alias align all allow alpha alt altitude amount " +
	"api app application approved archived arguments args array arrow article asset assignee at attachment attempt attribute audio auth author " +
	"available avatar average back background base begin behind bin bio bitrate blob block blocked blog body book bool border bottom branch brand " +
	"browser bucket budget buffer bug build bytes cache calendar call cancelled capacity caption card cases category cause center certificate " +
	"changed changes channel char charset check checked checksum child children choice city class client clock close closed cluster code col color " +
	"column columns command comment comments commit commits company complete completed component compressed condition conditions confidence config " +
	"connected connection container content contents context copies cost count counter country coverage cpu created created creator credit currency " +
	"current cursor custom customer cwd daily data database date datetime day days db deadline debug default definition degree deleted deletions delta " +
	"depth deprecated desc description destination detail details device diff digest dimension dir direction directory disabled discount disk display " +
	"distance doc docs document domain done done down draft due duration edges edited editor elapsed elements email emails enabled encoding end ended engine entity " +
	"entries entry env environment error errors estimate etag event events exact exception exit expected expired expires extension extra failed failure " +
	"false family fax feature features feed field fields file filename files filter filtered final finished first flag flags float folder font footer " +
	"force forecast fork forks form format found frame free frequency from full fullname function gender geo given global grade grant graph group groups " +
	"guid hash has head header headers health height help hidden high history hits home host hour hours href html http humidity icon id identifier ids image " +
	"images imported in incomplete index info information initial input inserted install int integer interval invalid invoice ip is isbn iso issue issues item items job " +
	"jobs json key keys kind label labels lang language last lastname lat latest latitude left length level levels license limit line lines link links list lng load " +
	"loaded local locale location lock locked log login logo logs lon long longitude low lower main major map mark markdown mask match matches matched max maximum mb md md5 mean " +
	"media median member members memory merged message messages meta metadata method metric metrics middle milestone mime min minimum minor minute minutes missing mode " +
	"model modified module month more mtime name names namespace nested network new next nick nickname node nodes note notes null num number object offset " +
	"ok old open opened operation option options order orders ordinal org organization origin os other out output overview owner package page pages paid parameter parameters params parent " +
	"part parts passed password path pattern payload payment pending percent percentage period permalink permissions person phone photo pid place plan platform player " +
	"plural point points policy pool port position post postal posts prefix present pressure preview previous price primary priority private process product " +
	"products profile progress project projects prompt properties property protocol provider public published publisher pull push quality quantity query queue " +
	"quota quote random range rank rate rates rating ratio raw reached read ready reason received recipient record records redirect ref reference refs region " +
	"registered related release released remaining remote removed replies reply repo repository request required requests reset resolution resolved resource resources " +
	"response rest result results retries return returns review reviews revision right role roles root route row rows rule rules run running runtime sample " +
	"scheme schema scope score screen script search seats second seconds secret section seed selected selector sender sent sequence series server service session set " +
	"settings severity sha sha1 sha256 shape shared shipping short side signature singular site size skipped sku slug snippet some sort source space spec speed stack stage standard star stargazers " +
	"stars start started state statement statistics stats status stderr stdin stdout step steps stock stop stopped storage stored store street string style sub subject " +
	"submitted subtitle subtotal subtype success successful suffix sum summary sunrise sunset supported symbol system tab table tag tags target task tasks tax team teams " +
	"telephone temp temperature template tenant term terms test text theme thread threshold thumbnail ticket tier time timeout timestamp times timezone title to today " +
	"token tokens tool tools top topic topics total totals trace track trackers traffic transaction translation tree trend trigger true truncated type types tz uid uncompressed unit units " +
	"unknown unread untracked until up update updated updates upper uptime uri url urls usage used user userid username users utc utf8 uuid valid value values variable variables variant " +
	"vendor verified version versions via video view viewer views visibility visible volume votes wait warning warnings watch watchers weather web week weight " +
	"when width wind window with word words workflow working x y year years zip zone zoom z"

// fieldWordSet are fieldWords, and what a tool's own text names.
func fieldWordSet(about string) map[string]bool {
	known := wordSet(fieldWords)
	for _, w := range splitWords(about[:min(len(about), 64<<10)]) {
		known[w.text] = true
	}
	return known
}

// isFieldName reports whether a word of a key is known, or the key too short to
// say anything.
func isFieldName(key string, known map[string]bool) bool {
	if len(key) <= 2 {
		return true
	}
	for _, w := range splitWords(key) {
		if known[w.text] || known[strings.TrimRight(w.text, "0123456789")] || known[strings.TrimSuffix(w.text, "s")] {
			return true
		}
	}
	return false
}
