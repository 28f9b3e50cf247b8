package conformance_test

import (
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/oncehttp/oncehttp/conformance"
)

// flaw is a sample with one bug, and what the suite has to say of it.
type flaw struct {
	name   string
	about  string // what the server does
	c      choices
	q      quirk
	change func(o *conformance.Options)
	// want lists the cases that fail (behind ? warn, behind ~ are inconclusive)
	// where effects are counted, and blind where they are only inferred. A blind
	// of "-" says that it cannot be seen without a witness.
	want, blind string
}

// flaws are the broken samples, in the order of what they get wrong.
func flaws() []flaw {
	var all []flaw
	for _, part := range [][]flaw{keyFlaws(), coverFlaws(), storeFlaws(), lateFlaws(), errorFlaws(), flightFlaws()} {
		all = append(all, part...)
	}
	return all
}

// keyFlaws read the key wrongly.
func keyFlaws() []flaw {
	remake := func(change func(string) string) quirk {
		return quirk{key: func(_ *call, k labelled) labelled {
			k.key = change(k.key)
			return k
		}}
	}
	return []flaw{
		{
			name: "key-ignored", about: "Every request is executed, whatever its key.",
			q:    quirk{key: func(*call, labelled) labelled { return labelled{} }},
			want: "replay/answered replay/effects-once", blind: "replay/answered replay/effects-once",
		}, {
			name: "key-as-number", about: "A key of digits is read as a number, so that leading zeros and the last digits of long keys are lost.",
			q: remake(func(key string) string {
				if n, err := strconv.ParseFloat(key, 64); err == nil {
					return strconv.FormatFloat(n, 'g', -1, 64)
				}
				return key
			}),
			want: "key/digits", blind: "key/digits",
		}, {
			name: "key-decoded", about: "A key is decoded as a part of a URL, so that + and %2B are one.",
			q: remake(func(key string) string {
				return strings.NewReplacer("%2B", "+", "%41", "A").Replace(key)
			}),
			want: "key/hostile-names", blind: "key/hostile-names",
		}, {
			name: "key-first-36", about: "Only the first 36 characters of a key are kept.",
			q:    remake(func(key string) string { return key[:min(len(key), 36)] }),
			want: "key/255-accepted key/case-sensitive key/hostile-names", blind: "key/255-accepted key/case-sensitive key/hostile-names",
		}, {
			name: "key-per-route", about: "Keys are looked at on one route only.",
			q: quirk{key: func(c *call, k labelled) labelled {
				if c.r.URL.Path != "/payments" {
					return labelled{}
				}
				return k
			}},
			want: "replay/second-path", blind: "replay/second-path",
		}, {
			name: "key-post-only", about: "Keys are looked at for POST only, though PATCH is served too.",
			q: quirk{key: func(c *call, k labelled) labelled {
				if c.r.Method != http.MethodPost {
					return labelled{}
				}
				return k
			}},
			want: "replay/other-method", blind: "replay/other-method",
		}, {
			name: "key-first-caller-only", about: "Keys of the second caller have no effect.",
			q: quirk{key: func(c *call, k labelled) labelled {
				if strings.Contains(c.r.Header.Get("Authorization"), "bob") {
					return labelled{}
				}
				return k
			}},
			// An empty key is refused to the first caller, and executed for the second.
			want: "replay/second-caller key/empty-not-shared", blind: "replay/second-caller key/empty-not-shared",
		}, {
			name: "key-small-bodies-only", about: "A request of more than 64 KiB is not protected.",
			q: quirk{key: func(c *call, k labelled) labelled {
				if len(c.body) > 64<<10 {
					return labelled{}
				}
				return k
			}},
			want: "replay/large-body conflict/late-difference", blind: "replay/large-body conflict/late-difference",
		},
	}
}

// coverFlaws mistake which requests are the same.
func coverFlaws() []flaw {
	covers := func(body func(c *call) string) quirk {
		return quirk{covers: func(c *call, parts []string) []string {
			parts[3] = body(c)
			return parts
		}}
	}
	return []flaw{
		{
			name: "covers-reference", about: "Only the reference is compared: a changed amount gets the old answer.",
			q:    covers(func(c *call) string { return c.ref }),
			want: "conflict/one-number-differs ?conflict/late-difference ?conflict/large-numbers ?conflict/nested-differs ?conflict/string-case", blind: "conflict/one-number-differs ?conflict/late-difference ?conflict/large-numbers ?conflict/nested-differs ?conflict/string-case",
		}, {
			name: "covers-length", about: "Only the length of a body is compared.",
			q:    covers(func(c *call) string { return strconv.Itoa(len(c.body)) }),
			want: "conflict/not-silent", blind: "conflict/not-silent",
		}, {
			name: "covers-1-KiB", about: "Only the first KiB of a body is compared.",
			q:    covers(func(c *call) string { return string(c.body[:min(len(c.body), 1024)]) }),
			want: "?conflict/late-difference", blind: "?conflict/late-difference",
		}, {
			name: "covers-floats", about: "Bodies are compared after their numbers were read as floats.",
			q: covers(func(c *call) string {
				var document any
				_ = json.Unmarshal(c.body, &document) // what is no JSON is refused later
				text, _ := json.Marshal(document)
				return string(text)
			}),
			want: "?conflict/large-numbers", blind: "?conflict/large-numbers",
		}, {
			name: "covers-no-path", about: "The path is not compared.",
			q: quirk{covers: func(_ *call, parts []string) []string {
				parts[1] = ""
				return parts
			}},
			want: "scope/other-path-not-answered", blind: "scope/other-path-not-answered",
		}, {
			name: "covers-no-method", about: "The method is not compared.",
			q: quirk{covers: func(_ *call, parts []string) []string {
				parts[0] = ""
				return parts
			}},
			want: "scope/other-method", blind: "scope/other-method",
		}, {
			name: "scope-no-caller", about: "The caller is not part of what a key belongs to.",
			q:    quirk{scope: func(_ *call, parts []string) []string { return parts[1:] }},
			want: "scope/other-principal-not-answered", blind: "scope/other-principal-not-answered",
		}, {
			name: "elsewhere-409-executes", about: "The same key on another path is answered 409, and executed.",
			q:    quirk{other: executeAnd(http.StatusConflict, func(c *call) bool { return c.r.URL.Path != "/payments" })},
			want: "scope/other-path-not-answered", blind: "-",
		}, {
			name: "stranger-403-executes", about: "A stranger with somebody's key is answered 403, and executed.",
			q: quirk{
				scope: func(_ *call, parts []string) []string { return parts[1:] },
				covers: func(c *call, parts []string) []string {
					return append(parts, c.r.Header.Get("Authorization"))
				},
				other: executeAnd(http.StatusForbidden, func(c *call) bool { return strings.Contains(c.r.Header.Get("Authorization"), "bob") }),
			},
			want: "scope/other-principal-not-answered", blind: "-",
		},
	}
}

// executeAnd executes another request under a key and answers it with a refusal.
func executeAnd(status int, when func(c *call) bool) func(*call, *entry) (reply, bool) {
	return func(c *call, _ *entry) (reply, bool) {
		if !when(c) {
			return reply{}, false
		}
		c.serve()
		return c.refusal(status, "mismatch", "the key belongs to another request"), true
	}
}

// storeFlaws keep the answer badly, or not for long.
func storeFlaws() []flaw {
	return []flaw{
		{
			name: "record-used-once", about: "A stored answer is given once and then forgotten.",
			q: quirk{repeat: func(c *call, e *entry) (reply, bool) {
				c.mu.Lock()
				defer c.mu.Unlock()
				id, _ := c.names()
				delete(c.entries, id)
				return *e.reply, true
			}},
			want: "replay/effects-once", blind: "replay/effects-once",
		}, {
			name: "record-for-a-second", about: "A key is forgotten a second after it was used.",
			q: quirk{front: func(c *call) bool {
				c.mu.Lock()
				defer c.mu.Unlock()
				for id, e := range c.entries {
					if e.reply != nil && time.Since(e.born) > time.Second {
						delete(c.entries, id)
					}
				}
				return false
			}},
			change: func(o *conformance.Options) {
				o.Skip = []string{"soak/**", "inflight/long-work", "replay/after-100-requests"}
			}, // they may take a second, too
			want: "replay/after-a-pause", blind: "replay/after-a-pause",
		}, {
			name: "two-nodes", about: "Two nodes without a common store serve requests in turn.",
			q: quirk{scope: func(c *call, parts []string) []string {
				c.mu.Lock()
				defer c.mu.Unlock()
				sent, _ := c.notes["sent "+c.key.key].(int)
				c.notes["sent "+c.key.key] = sent + 1
				return append(parts, strconv.Itoa(sent%2))
			}},
			want: "replay/answered replay/effects-once", blind: "replay/answered replay/effects-once",
		}, {
			name: "lock-only", about: "There is a lock while a request runs, and no record afterwards.",
			q:    quirk{keep: func(*call, reply) *reply { return nil }},
			want: "replay/answered replay/effects-once", blind: "replay/answered replay/effects-once",
		}, {
			name: "replay-cuts-large", about: "Of a stored answer 64 bytes are kept.",
			q: quirk{keep: func(_ *call, a reply) *reply {
				if a.status >= 400 {
					return nil
				}
				a.body = a.body[:min(len(a.body), 64)]
				return &a
			}},
			want: "?replay/body-bytes replay/large-body", blind: "?replay/body-bytes replay/large-body",
		}, {
			name: "replay-of-a-stranger", about: "A repeat is given the answer of whichever request came last.",
			q: quirk{repeat: func(c *call, e *entry) (reply, bool) {
				c.mu.Lock()
				defer c.mu.Unlock()
				last, _ := c.notes["last"].(reply)
				return last, last.status != 0
			}, keep: func(c *call, a reply) *reply {
				c.mu.Lock()
				defer c.mu.Unlock()
				if a.status >= 400 {
					return nil
				}
				if c.notes["last"] == nil {
					c.notes["last"] = a
				}
				return &a
			}},
			want: "replay/answered", blind: "replay/answered",
		},
	}
}
