package bridge_test

import (
	"encoding/json"
	"slices"
	"strings"
	"time"
)

// save does what a variable's name says, or sends the names to the host.
func (k *kernel) save(c *cell) {
	report := object{"count": len(k.vars), "lost": [][2]string{}, "whole": true}
	for _, name := range k.vars {
		switch name {
		case "socket":
			report["lost"] = [][2]string{{"socket", "socket: cannot be kept"}}
		case "fails":
			k.answer(c, nil, object{"status": "error", "error": object{"type": "E", "message": "no way"}})
			return
		case "exits":
			k.lose("it exited")
			k.answer(c, object{"lost": "it exited"}, nil)
			return
		case "slow":
			select {
			case <-time.After(time.Duration(c.Timeout * float64(time.Second))):
			case <-c.interrupted:
			case <-k.box.gone:
				return
			}
			report["whole"], report["short"] = false, true
		case "deaf":
			<-k.box.gone
			return
		case "huge":
			report["whole"] = c.Limit > 1<<20
		case "flood":
			for {
				if text := k.call(`kernel/save {"offset":0,"data":"` + strings.Repeat("A", 4<<20) + `"}`); text != "{}" {
					k.answer(c, nil, object{"status": "error", "error": object{"type": "E", "message": text}})
					return
				}
			}
		}
	}
	kept := slices.DeleteFunc(slices.Clone(k.vars), func(name string) bool { return name == "socket" })
	report["count"] = len(kept)
	if len(kept) > 0 {
		k.call(string(append([]byte("kernel/save "), toJSON(object{"offset": 0, "data": []byte(strings.Join(kept, " "))})...)))
	}
	k.answer(c, nil, object{"value": object{"text": string(toJSON(report))}})
}

// restore takes the names back, and does what one of them says.
func (k *kernel) restore(c *cell) {
	var reply struct{ Data []byte }
	if err := json.Unmarshal([]byte(k.call(`kernel/load {"offset":0}`)), &reply); err != nil {
		panic(err)
	}
	names := strings.Fields(string(reply.Data))
	for _, name := range names {
		switch name {
		case "poison":
			k.lose("it exited with status 1")
			k.answer(c, object{"lost": "it exited with status 1"}, nil)
			return
		case "death":
			k.box.program()
			return
		case "nonsense":
			k.answer(c, nil, object{"value": object{"text": "[]"}})
			return
		}
	}
	k.vars = names
	k.print("printed while it was restored")
	k.answer(c, nil, object{"value": object{"text": string(toJSON(object{"names": names, "lost": [][2]string{}}))}})
}
