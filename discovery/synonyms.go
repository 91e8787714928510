package discovery

import "strings"

// synonymTable lists words that stand for each other where tools are named and
// described, one group a line; a+b is a pair of words. A word in several groups
// stands for the words of all of them.
const synonymTable = `
create add new make insert generate build
create open file post register
delete remove drop erase destroy clear
update edit modify change set patch alter
get fetch retrieve read obtain load show view
get list query lookup find check
list show enumerate browse
search find query lookup discover look
send post publish submit
message chat dm
message mail email e+mail
run execute start launch invoke
stop kill terminate end cancel abort
download fetch save
save write store export persist
upload push put attach
copy duplicate clone
move rename
convert transform translate
calculate compute evaluate math arithmetic
compare diff difference
analyze analysis examine inspect review
summarize summary digest
extract parse scrape
merge combine join
validate verify check
draw plot render visualize
recommend suggest suggestion recommendation
explain describe info information detail
ticket issue bug
pr pull+request merge+request mr
repo repository
dir directory folder
doc document docs
docx word doc document
xlsx xls excel spreadsheet workbook sheet
pptx ppt powerpoint presentation slide deck
md markdown
csv table tabular
db database sql
pic picture image photo img png jpg jpeg
video movie film clip
audio music sound song mp3 wav
graph chart plot diagram figure
diagram flowchart flow+chart mermaid
url link website site webpage web+page page
web internet online
browser webpage web+page
navigate open visit goto
click press tap
type fill input
screenshot capture snapshot screen+shot
stock share equity ticker
ticker symbol
price cost quote rate value
finance financial
company business corporation
crypto cryptocurrency bitcoin coin token btc
currency exchange money forex
news headline headlines
trend trending hot popular ranking rank
paper article publication literature study
author writer
weather forecast temperature climate
location place address position
address geocode coordinate latitude longitude
coordinate gps latlng
near nearby around close
route direction directions path navigation
map geo geographic
restaurant food dining meal
recipe dish cook cooking meal
hotel accommodation lodging stay
train railway rail
ticket booking
flight airline plane
date day today time now tomorrow
time clock hour
current now latest today
schedule calendar event appointment meeting
task todo to+do
note memo
user person people member account
team group
contact person
password secret credential
token credential auth
auth authenticate login sign+in authentication
config configuration setting settings preference option
env environment
cmd command terminal shell bash
process pid
server host machine
container docker
log logs
commit revision changeset
branch ref
package library module dependency
dependency deps
version release
vulnerability security cve
code source snippet program
function method
test spec
memory remember knowledge
entity node
relation edge relationship
random shuffle
number integer figure
game gaming match
card deck
disease condition
wiki wikipedia encyclopedia
domain hostname dns
ip ipv4
text content
language lang locale
id identifier
stat stats statistics metric metrics
history historical past
max maximum
min minimum
avg average mean
num number count amount
qty quantity
pwd password
msg message
org organization organisation
color colour
app application
ui interface component
todo issue
channel room conversation
comment reply
k8s kubernetes
news 新闻 资讯
trending 热榜 热搜 热门 热点
ranking rank 排行 榜单
weather 天气 气象
recipe 菜谱 食谱
dish 菜品 菜肴
train 火车 列车
ticket 车票 余票
station 车站 火车
calendar almanac 黄历 日历 农历
fortune bazi 八字
search find 搜索 查询 检索
get fetch 获取 查询
list 列表 列出
create 创建 新建
delete 删除
update 更新 修改
save 保存
insert add 插入 添加
convert 转换
file 文件
image picture 图片 图像
slide 幻灯
presentation 演示
document 文档
component 组件
game 游戏
character 角色
card 卡牌
date 日期
time 时间
city 城市
web 网页 网络
keyword 关键
video 视频
music 音乐
book 图书 书籍
movie 电影
article 文章
price 价格
stock 股票
map 地图
translate 翻译
email mail 邮件
message 消息
user 用户
recommend 推荐
js javascript
ts typescript
py python
`

// stopWords carry little meaning in a request.
const stopWords = `a an and any are as at be been being but by can could did do does for from had has have he her him his how i if in
into is it its just like may me might my need now of on or our please she should so some such tell than that the their them then
there these they this those to too up us use used using very via want was we were what when where which while who whom whose why
will with would you your help also about give let out all tool tools mcp server api`

// foreignWords are short words of other languages: none of them is an English
// word that was spelt wrong.
const foreignWords = `aber alle als auch auf aus bei bin bis das dass dein dem den denn der des dich die dies diese diesen dir doch drei durch ein eine einem
einen einer eines er es euch für gegen hat hier ich ihm ihr ihre immer ist jede jeder kann kein keine machen mein meine meinen mir mit nach nicht noch
nur oder ohne sein seine sich sie sind über um und uns unser unter viel vom von vor war warum was weil wenn wer wie wir wird wo zu zum zur zwei
aux avec avoir ce cela ces cet cette chez comme dans de des deux dont du elle en est et être faire font ici il ils je la le les leur leurs lui mais même
mes mon ne nos notre nous où par pas peu plus pour quand que quel quelle qui quoi sa sans se ses si son sont sous sur ta te tes toi ton tous tout très une
vers vos votre vous
al algo como con cual cuando del desde donde dos el ella ellos entre era es esa ese eso esta este esto hace hacer hasta hay la las lo los más mi mis muy
nada no nos o otra otro para pero por porque que quien se según ser si sin sobre son su sus también tan te tiene todo tu un una uno unos y ya
anche che chi ci come con cosa da dal dalla degli dei del della delle di dove è gli i il io la le lei lo loro lui ma mio nel nella noi non per perché
più quale quando quello questa questo se sei senza si sono su sua sul suo tra tua tuo tutti tutto un una uno
ao aos até com da das de do dos e ela ele em entre essa esse esta este eu foi isso isto já mais mas meu minha muito na não nas nem no nos nós ou para pela
pelo por que quem se sem ser seu sua são também tem uma umas você
aan alle als bij daar dan dat de deze die dit door een en er geen haar had hebben heeft het hij hoe iets ik in is je kan maar meer met mij mijn naar
niet nog nu of om ook op over te tot uit van veel voor waar wat we werd wie wij worden ze zich zijn zo zou`

// proseWords say little in a longer text, though they can be all that a short
// request has.
const proseWords = `find look looking get getting make making show see know provide include including included following based
approximate detailed detail comprehensive full complete best good better great top way much many long short thing things people person
potential well particular particularly overall interested consider considering ask asking start going go think idea ideas arrange
directly really next first last several different various main specific important possible available standard high low big small
need needs want wants around order case part kind type lot bit example right ready enough quick quickly easy easily sure back take turn
put set help helpful explain understand understanding focus goal let's lets two three four five one both each every everything another
other others still yet already during between among under over within without per than then after before above below`

const (
	textFiles    = "md markdown txt csv json yaml yml xml html log py js ts go toml ini conf"
	writingWords = "write save saved store put export output generate create make into report draft produce"
)

// synonyms knows which stems stand for each other.
type synonyms struct {
	groups [][]string          // stems; a pair of words is written as one
	byStem map[string][]int    // groups a stem is in
	pairs  map[string][]string // first stem of a pair to the second ones
	toward map[string][]string // stem to stems that it hints at
	stop   map[string]bool
	// intents are those of verbs' stems; foreign are words of other languages that
	// look like English ones.
	intents map[string]intent
	foreign map[string]bool
	prose   map[string]bool // in a longer text
	// textFiles are extensions of plain text, writing the words before the path of
	// a file that is written.
	textFiles, writing map[string]bool
}

func newSynonyms() *synonyms {
	s := &synonyms{byStem: make(map[string][]int), pairs: make(map[string][]string)}
	for line := range strings.Lines(synonymTable) {
		var group []string
		for entry := range strings.FieldsSeq(line) {
			first, second, pair := strings.Cut(entry, "+")
			if pair {
				s.pairs[first] = append(s.pairs[first], second)
			}
			st := stem(first + second)
			group = append(group, st)
			s.byStem[st] = append(s.byStem[st], len(s.groups))
		}
		s.groups = append(s.groups, group)
	}
	s.stop, s.prose = wordSet(stopWords), wordSet(proseWords)
	s.textFiles, s.writing = wordSet(textFiles), wordSet(writingWords)
	s.intents, s.foreign = intentsByStem(), wordSet(foreignWords)
	s.associate()
	return s
}

// of returns the stems that stand for a stem, itself excluded, in a fixed
// order and possibly repeated.
func (s *synonyms) of(st string) []string {
	var list []string
	for _, g := range s.byStem[st] {
		for _, other := range s.groups[g] {
			if other != st {
				list = append(list, other)
			}
		}
	}
	return list
}

// isPair reports whether two words in a row are one entry of the table.
func (s *synonyms) isPair(first, second string) bool {
	for _, w := range s.pairs[first] {
		if w == second || w == strings.TrimSuffix(second, "s") {
			return true
		}
	}
	return false
}
