package bugs

import (
	"net/http"
	"slices"
	"strings"

	"github.com/oncehttp/oncehttp/mockserver/internal/keylayer"
)

// keyBugs returns the bugs of reading the key.
func keyBugs() []Bug {
	return slices.Concat(unreadBugs(), collidingBugs(), respellingBugs(), misreadBugs(), passedOverBugs(), quotingBugs(), boundBugs())
}

// unreadBugs returns the bugs of a server that misses the key of a request, or sees one where there is none. Cases are the test cases that must find
// the bug. Read returns the key in the place of the right one, x.Key. Scope changes the texts under which a key is stored: the caller first, the key
// last. One makes the key of a list of header values, bare or in quotes.
func unreadBugs() []Bug {
	return []Bug{
		{
			Name: "keys-ignored", Description: "The key has no effect: every request is executed.",
			Impact: "A retry after a lost answer charges the customer again.",
			Cases:  []string{"replay/effects-once", "replay/answered"},
			change: mutation{Read: func(*layer, *exchange) reading { return reading{} }},
		}, {
			Name: "other-header-name", Description: "The key is looked for under X-Idempotency-Key only.",
			Impact: "A client that follows the draft is not protected: its retries charge the customer again.",
			Cases:  []string{"replay/effects-once", "replay/answered"},
			change: mutation{Read: func(l *layer, x *exchange) reading {
				return keylayer.One(l.Profile, x.Request.Header.Values("X-Idempotency-Key"), bare)
			}},
		}, {
			Name: "two-lines-first-wins", Description: "Of two key headers the first counts, and nothing is said.",
			Impact: "A proxy that adds a key of its own decides which operation it is, and neither end is told.",
			Cases:  []string{"key/two-lines"},
			change: mutation{Read: func(l *layer, x *exchange) reading {
				values := x.Request.Header.Values(l.Profile.Carrier.Name)
				return keylayer.One(l.Profile, values[:min(len(values), 1)], bare)
			}},
		}, {
			Name: "empty-key-shared", Description: "An empty key header is one key for everybody.",
			Impact: "A customer whose client sends an empty key is shown a stranger's payment, and his own is never made.",
			Cases:  []string{"key/empty-not-shared"},
			change: mutation{Read: func(l *layer, x *exchange) reading {
				if x.Key.Present && x.Key.Key == "" && strings.Trim(rawKey(l, x), `" `) == "" {
					return reading{Key: "(empty)", Present: true}
				}
				return x.Key
			}, Scope: strangersToo("(empty)")},
		}, {
			Name: "keyless-merged", Description: "Requests without a key are merged when their bodies are equal, also those of strangers.",
			Impact: "Two customers who order the same thing without a key get one order between them.",
			Cases:  []string{"key/missing-not-merged"},
			change: mutation{Read: func(l *layer, x *exchange) reading {
				if !x.Key.Present {
					return reading{Key: "(none)" + string(x.Body), Present: true}
				}
				return x.Key
			}, Scope: strangersToo("(none)")},
		},
	}
}

// collidingBugs returns the bugs of a server that takes two keys for one. Cases are the test cases that must find the bug.
func collidingBugs() []Bug {
	return []Bug{
		{
			Name: "key-truncated", Description: "Only the first 64 bytes of a key count, so that long keys collide.",
			Impact: "Two long keys with the same beginning are one: the second payment is never made.",
			Cases:  []string{"key/255-accepted"},
			change: remade(func(key string) string { return key[:min(len(key), 64)] }),
		}, {
			Name: "key-folded", Description: "Keys are compared without regard to case.",
			Impact: "Two keys that differ in case alone are one: the second payment is never made.",
			Cases:  []string{"key/case-sensitive"},
			change: remade(strings.ToLower),
		}, {
			Name: "key-trimmed", Description: "Punctuation at the ends of a key is trimmed away.",
			Impact: "Two keys that differ in their punctuation are one: the second payment is refused or never made.",
			Cases:  []string{"key/hostile-names"},
			change: remade(func(key string) string { return strings.Trim(key, "-_.:/") }),
		}, {
			Name: "key-normalised", Description: "Everything but letters and digits is taken out of a key.",
			Impact: "Keys such as a:b and a-b are one: the second payment is refused or never made.",
			Cases:  []string{"key/hostile-names"},
			change: remade(lettersAndDigits),
		},
	}
}

// quotingBugs returns the bugs of a server with keys in quotes, the draft's own spelling. Cases are the test cases that must find the bug. Read
// returns the key in the place of the right one, x.Key. Intercept may answer before the key is looked up; nil: go on as a correct server.
func quotingBugs() []Bug {
	return []Bug{
		{
			Name: "quoted-key-500", Description: "A key in quotes, which is the draft's own spelling, is answered 500.",
			Impact: "A client that spells its keys as the draft does cannot pay at all.",
			Cases:  []string{"key/sf-string-accepted"},
			change: mutation{Intercept: func(l *layer, x *exchange) *answer {
				return failure(l, strings.HasPrefix(rawKey(l, x), `"`))
			}},
		}, {
			Name: "malformed-quotes-accepted", Description: "A quoted key that does not end, or has garbage behind it, is taken as it is.",
			Impact: "A broken client is not told, and its repeats are other operations to a stricter server.",
			Cases:  []string{"key/malformed-sf-rejected"},
			change: mutation{Read: func(l *layer, x *exchange) reading {
				if raw := rawKey(l, x); x.Key.Err != nil && strings.HasPrefix(raw, `"`) && len(raw) > 2 {
					return reading{Key: raw, Present: true}
				}
				return x.Key
			}},
		}, {
			Name: "parameters-in-key", Description: "The parameters behind a quoted key are part of the key.",
			Impact: "A retry through a library that adds a parameter charges the customer again.",
			Cases:  []string{"key/sf-parameters-ignored"},
			change: mutation{Read: func(l *layer, x *exchange) reading {
				if raw := rawKey(l, x); x.Key.Err == nil && strings.HasPrefix(raw, `"`) {
					return reading{Key: strings.ReplaceAll(raw, `"`, ""), Present: true}
				}
				return x.Key
			}},
		},
	}
}

// boundBugs returns the bugs of a server in its answer to keys outside the bounds of length and characters. Cases are the test cases that must find
// the bug. Read returns the key in the place of the right one, x.Key; its Err says that it breaks the bounds. Intercept may answer before the key is
// looked up; nil: go on as a correct server.
func boundBugs() []Bug {
	return []Bug{
		{
			Name: "invalid-key-500", Description: "A key outside the bounds is answered 500.",
			Impact: "A client with a bad key tries again for ever instead of being told what is wrong.",
			Cases:  []string{"key/invalid-is-4xx"},
			change: mutation{Intercept: func(l *layer, x *exchange) *answer {
				return failure(l, x.Key.Err != nil)
			}},
		}, {
			Name: "invalid-key-executed", Description: "A key outside the bounds is dropped, and the request executed without protection.",
			Impact: "A client with a bad key believes that it is protected: its retries charge the customer again.",
			Cases:  []string{"key/invalid-not-executed"},
			change: mutation{Read: func(l *layer, x *exchange) reading {
				if x.Key.Err != nil {
					return reading{}
				}
				return x.Key
			}},
		}, {
			Name: "long-key-accepted", Description: "A key of any length is accepted.",
			Impact: "A key of any length fills the store: everybody's keys are lost when it is full.",
			Cases:  []string{"key/5000-rejected-4xx"},
			change: mutation{Read: func(l *layer, x *exchange) reading {
				if raw := rawKey(l, x); x.Key.Err != nil && len(raw) > 255 {
					return reading{Key: raw, Present: true}
				}
				return x.Key
			}},
		},
	}
}

// rawKey returns the first key header as sent, without outer spaces; "" if there is none.
func rawKey(l *layer, x *exchange) string {
	return strings.TrimSpace(x.Request.Header.Get(l.Profile.Carrier.Name))
}

// bare reads the text of a key that is raw or quoted, and returns the key: the empty encoding accepts both.
func bare(text string) (string, error) { return keylayer.ParseKey(text, "") }

// remade returns a mutation of the mock, a deliberate bug in reading keys: change(key) takes the place of each valid key. Without a key, change is
// called with "".
func remade(change func(string) string) mutation {
	return mutation{Read: func(l *layer, x *exchange) reading {
		k := x.Key
		if k.Err == nil {
			k.Key = change(k.Key)
		}
		return k
	}}
}

// lettersAndDigits returns the key without all other characters.
func lettersAndDigits(key string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' {
			return r
		}
		return -1
	}, key)
}

// strangersToo returns a Mutation.Scope (it changes the name under which a key is stored): for keys with this prefix the caller is left out, so that
// all callers share them.
func strangersToo(prefix string) func(*exchange, []string) []string {
	return func(x *exchange, parts []string) []string {
		if strings.HasPrefix(x.Key.Key, prefix) {
			return parts[len(parts)-1:]
		}
		return parts
	}
}

// failure returns a 500 if the condition holds, for bugs that answer so; else nil, and the server goes on as a correct one.
func failure(l *layer, condition bool) *answer {
	if !condition {
		return nil
	}
	return keylayer.Problem(l.Profile, http.StatusInternalServerError, "the server failed", "")
}
