package discovery

import "strings"

// associationTable lists what people talk about when they want a certain tool,
// though they do not name it: who says "umbrella" asks for the weather. A line
// goes one way, from the words before ">" to those behind it; a+b is a pair of
// words. Chinese words are there in pairs of characters, as they are indexed.
const associationTable = `
umbrella rain rainy snow sunny storm wind hot cold warm humid degrees climate > weather forecast temperature 天气
trip travel tour journey vacation holiday itinerary sightseeing visit tourist > place route weather location map direction travel
city town country street avenue road square district neighborhood campus airport station hospital > place location address city
nearby near around close within distance km kilometer meter radius surrounding proximity > nearby place location
restaurant cafe bar shop museum park hotel pharmacy supermarket entertainment attraction landmark interesting amenity > place nearby category
lunch dinner breakfast supper > meal restaurant recipe food
eat hungry ingredient cuisine vegetarian vegan allergy allergic diet dessert soup kitchen > recipe meal cook food 菜谱 膳食 食材
car vehicle park drive parking > parking facility
electric ev tesla charge > charging station ev
bike bicycle cycling walk walking drive driving transit commute bus subway > route direction commute
trip route way reach travel > direction route
livability relocate residential neighborhood amenity > neighborhood area explore
school university kindergarten education > school
train railway rail high+speed seat departure timetable round+trip > train ticket station 火车 列车 车票 车站 余票
stop stopover platform > station 车站
transfer interline connection > interline 中转
hotel homestay apartment room night stay accommodation lodging guest adult check+in sleep rent > listing airbnb hotel booking
stock share shares investor investment portfolio invest nasdaq equity market > stock ticker price finance market
revenue profit earnings margin balance cash liabilities quarter quarterly > financial statement income earnings cashflow
fundamental dividend pe per eps valuation > fundamental dividend ticker
korea korean samsung hyundai seoul > kospi kosdaq 
gold silver platinum palladium metal oil commodity ounce gram > asset price
bitcoin ethereum solana dogecoin btc eth coin token defi blockchain > crypto cryptocurrency price market
fear greed sentiment mood > fear greed index sentiment
euro dollar yuan yen pound krone kroner franc rupee won usd eur cny jpy gbp > exchange rate currency
cost total sum estimate value worth budget multiply divide percent percentage bmi average calculate compute interest area equation > calculate expression calculator
rank ranking top hot popular trending trend viral bestseller > trending rank top 热榜 热搜 排行 热门
trending hot topic buzz viral social > 热搜 热榜 话题
news headline headlines current+affairs report latest happening > news 新闻 资讯
finance financial economy economic business stock > 财经 商业 经济
tech technology gadget digital startup > 科技 数码 技术
consumer shopping buy deal deals discount bargain worth electronics product purchase > 商品 优惠 购物 消费 产品
international world global politics political > 国际 全球 时政
movie film book novel tv series show drama read reading > 电影 图书 小说 电视
sport sports football match > 体育
entertainment celebrity star gossip > 娱乐 明星
video clip anime > 视频
game gaming gamer esports player console > game 游戏
apple iphone ipad mac ios macbook > 苹果
developer programming software engineering frontend backend > 技术 开发 developer
china chinese > 中文 中国
almanac lunar auspicious zodiac wedding marry married lucky > calendar chinese lunar 黄历 农历
birth born birthday fortune horoscope destiny fate pillars zodiac gender > bazi 八字 农历
champion lane hero summoner league jungle support counter > champion lol summoner
character hero dps healer team build echo > character 角色
echo artifact relic set > artifact 声骸
deck composition augment > deck tft
agent map duelist > valorant agent
card monster spell trap > card 卡牌
chess opening checkmate white black board pawn move > board move chess
almanac calendar > 黄历
painting painter artwork artist sculpture exhibition gallery exhibit canvas > museum object art
museum > museum object
background biography history fact facts who definition meaning explain encyclopedia > wikipedia article summary
wiki knowledge > wikipedia
author paper preprint research thesis survey science academic scholar conference citation field > paper arxiv article
arxiv preprint > paper
gene protein cancer tumor drug therapy clinical patient mutation medicine medical disease health biology > article trial variant biomedical
trial clinical phase cohort > trial
mutation gene genome variant allele > variant
talk lecture ted youtube video watch subtitle subtitles caption captions speech episode vlog > transcript youtube video
song music audio track bpm rhythm beats mp3 wav melody > audio tempo beat duration load
docx word report letter contract essay article > document word paragraph
heading footnote endnote paragraph > document
presentation slides pptx ppt deck > presentation slide save
xlsx spreadsheet csv workbook column row cell > excel sheet
pdf > pdf
report summary notes result results save saved > write file
markdown md txt log csv json > file
file folder path directory disk > file directory
picture photo png jpg jpeg image > image picture
outline brainstorm mindmap > mind map mindmap
flowchart algorithm sequence diagram > mermaid flow diagram
cloud frequency word > word cloud
hierarchy org department > organization chart
proportion share percentage > pie chart
route itinerary > path map
npm javascript node react vue dependency bundle frontend > npm package
maven java gradle spring jar > maven dependency version
docs documentation api reference guide usage framework sdk library tutorial > library docs documentation
component button ui design frontend css tailwind react > component ui
icon logo > icon
git commit branch repo repository history changes > git log status diff commit
github stars repository opensource open+source > github repository trending
container image nginx redis compose > container docker
website site page link official phishing legit domain registrar owner registered owns expire > domain whois website
asn ip > ip whois
sitemap crawl > sitemap page
amazon ebay taobao aliexpress walmart shop store seller buy selling > navigate browser page click fill
login log+in password account form submit button signup register booking book reserve > browser click fill navigate page
browse website visit open online click > navigate browser page click
screenshot snapshot > screenshot
scrape crawl content webpage > fetch webpage content html text
internet online look+up google find latest recent > search web
tomorrow today yesterday tonight week month year weekend now recent recently monday tuesday wednesday thursday friday saturday sunday schedule > current time date
timezone clock hour gmt utc > time timezone convert
dataset statistics government census open+data air+quality official public > dataset data gov package
remember memorize recall remind know > memory entity note knowledge observation
forget > delete remove memory
store remember memorize > add create save
person people somebody someone > entity
big large+file how+big file+size > size info metadata
when+was last+changed last+modified > info metadata time
look+for > search find
make+new new+folder > create
friend sister brother relationship family colleague > relation entity
note notes diary journal obsidian > note
plan steps organize project todo milestone > task plan request
think reason reasoning analyze complex step > thinking
lottery dice coin draw winner pick lucky shuffle random > random
leetcode exercise algorithm coding contest interview > problem challenge contest
story stories hn hacker > story comment
email inbox mailbox subject sender recipient > mail email message
meeting meet appointment invite attendee reschedule > event calendar meeting
meet friends together > meeting point
deploy rollout cluster pod > deployment kubernetes pod
metric dashboard alert incident > monitor alert
customer lead sales deal crm > customer contact deal
invoice payment refund subscription > payment invoice
notify announce tell inform > message post send
bug defect error crash > issue
row column schema select join > table query
metadata tag exif > metadata image
process pid running kill > process
terminal shell script execute run > process command
tofu beef pork chicken fish noodle rice egg potato tomato bread cake salad dish bake fry boil > recipe meal 菜谱
homepage portfolio landing dashboard > website page component
translate translation language bilingual > translate
essay blog post draft notes > write document note
subtitle speech spoken voice audio podcast > transcript audio
anime manga idol > 动画
funding startup venture capital > 创业 科技
sale discount coupon promotion > sale 优惠
skin outfit costume > skin champion
win+rate tier meta pick ban counter matchup > champion analysis meta
team league fixture tournament match schedule standings > esports team schedule
player profile match+history > player summoner match history
score rating review quality > score rating
license legal compatible compatibility > license compatibility
outdated deprecated unmaintained maintained abandoned > deprecated maintenance
alternative alternatives replace replacement similar > alternatives
security vulnerability exploit scan audit > vulnerability security
size lightweight weight kilobytes > size
upgrade newest release changelog > latest version release changelog
holder holders shareholder institution insider > holders insider
option options call put strike expiry > options
price history past historical chart move moved month > historical price history range
analyst recommendation buy rating upgrade > recommendations
snapshot capture > screenshot
scroll hover drag drop > page element
ocr scan receipt recognize > image extract
resize crop thumbnail rotate > image
merge combine join together > merger merge
split separate divide chapters > splitter split
encoding utf-8 charset > encoding
compare difference differences versus vs > compare diff
replace substitute rename > replace
bold italic font color format style > format font style
animation transition effect > animation effect transition
template theme layout design > template layout
link hyperlink url > link hyperlink url
backup duplicate clone > copy
permission access share role > permission access
password encrypt lock protect secure > protect password
token key random+string uuid hex > token random hex
sprint backlog epic story jira kanban > issue ticket board
wiki confluence notion > page document
alert on+call outage downtime > incident alert
bucket blob object upload > storage file
lambda serverless function deploy > function deploy
vector embedding semantic similar > search vector
`

// placeNames and companyNames are words that stand for a kind of thing rather
// than for themselves.
const (
	placeNames = `paris london berlin rome madrid vienna lisbon amsterdam prague munich hamburg moscow istanbul dubai cairo tokyo osaka kyoto
beijing shanghai tianjin guangzhou shenzhen hangzhou nanjing chengdu wuhan xian suzhou chongqing hong+kong taipei singapore bangkok seoul busan
delhi mumbai sydney melbourne toronto vancouver chicago boston seattle manhattan brooklyn new+york los+angeles san+francisco washington
california texas florida france germany italy spain china japan korea india england britain america usa canada australia brazil mexico
switzerland austria netherlands portugal greece turkey russia egypt thailand vietnam europe asia africa tower palace temple castle bridge
cathedral lake mountain island beach river plaza mall`
	placeMeans   = "place location address city geocode geographic"
	companyNames = `apple microsoft google alphabet nvidia tesla meta netflix intel amd samsung hyundai toyota sony alibaba tencent nike boeing ibm oracle
aapl msft goog googl nvda tsla amzn nflx`
	companyMeans = "stock ticker company symbol"
)

// associate reads the tables into s.
func (s *synonyms) associate() {
	s.toward = make(map[string][]string)
	line := func(cues, targets string) {
		var stems []string
		for target := range strings.FieldsSeq(targets) {
			stems = append(stems, stem(target))
		}
		for cue := range strings.FieldsSeq(cues) {
			first, second, pair := strings.Cut(cue, "+")
			if pair {
				s.pairs[first] = append(s.pairs[first], second)
			}
			st := stem(first + second)
			s.toward[st] = append(s.toward[st], stems...)
		}
	}
	for row := range strings.Lines(associationTable) {
		if cues, targets, ok := strings.Cut(row, ">"); ok {
			line(cues, targets)
		}
	}
	line(placeNames, placeMeans)
	line(companyNames, companyMeans)
}
