package mockserver

import (
	"net/http"
	"slices"
	"strings"
)

// keyBugs read the key wrongly.
func keyBugs() []Bug { return slices.Concat(unreadBugs(), collidingBugs(), quotingBugs(), boundBugs()) }

// unreadBugs do not see the key, or see one where there is none.
func unreadBugs() []Bug {
	return []Bug{
		{
			Name: "keys-ignored", Description: "The key has no effect: every request is executed.",
			Cases:  []string{"replay/effects-once", "replay/answered"},
			change: mutation{read: func(*Server, *exchange) reading { return reading{} }},
		}, {
			Name: "other-header-name", Description: "The key is looked for under X-Idempotency-Key only.",
			Cases: []string{"replay/effects-once", "replay/answered"},
			change: mutation{read: func(s *Server, x *exchange) reading {
				return one(s.cfg.Profile, x.r.Header.Values("X-Idempotency-Key"), bare)
			}},
		}, {
			Name: "two-lines-first-wins", Description: "Of two key headers the first counts, and nothing is said.",
			Cases: []string{"key/two-lines"},
			change: mutation{read: func(s *Server, x *exchange) reading {
				values := x.r.Header.Values(s.cfg.Profile.Carrier.Name)
				return one(s.cfg.Profile, values[:min(len(values), 1)], bare)
			}},
		}, {
			Name: "empty-key-shared", Description: "An empty key header is one key for everybody.",
			Cases: []string{"key/empty-not-shared"},
			change: mutation{read: func(_ *Server, x *exchange) reading {
				if x.key.present && x.key.key == "" && strings.Trim(rawKey(x), `" `) == "" {
					return reading{key: "(empty)", present: true}
				}
				return x.key
			}, scope: strangersToo("(empty)")},
		}, {
			Name: "keyless-merged", Description: "Requests without a key are merged when their bodies are equal, also those of strangers.",
			Cases: []string{"key/missing-not-merged"},
			change: mutation{read: func(_ *Server, x *exchange) reading {
				if !x.key.present {
					return reading{key: "(none)" + string(x.body), present: true}
				}
				return x.key
			}, scope: strangersToo("(none)")},
		},
	}
}

// collidingBugs make one key of two.
func collidingBugs() []Bug {
	return []Bug{
		{
			Name: "key-truncated", Description: "Only the first 64 bytes of a key count, so that long keys collide.",
			Cases:  []string{"key/255-accepted"},
			change: remade(func(key string) string { return key[:min(len(key), 64)] }),
		}, {
			Name: "key-folded", Description: "Keys are compared without regard to case.",
			Cases:  []string{"key/case-sensitive"},
			change: remade(strings.ToLower),
		}, {
			Name: "key-trimmed", Description: "Punctuation at the ends of a key is trimmed away.",
			Cases:  []string{"key/hostile-names"},
			change: remade(func(key string) string { return strings.Trim(key, "-_.:/") }),
		}, {
			Name: "key-normalised", Description: "Everything but letters and digits is taken out of a key.",
			Cases:  []string{"key/hostile-names"},
			change: remade(lettersAndDigits),
		},
	}
}

// quotingBugs stumble over the draft's quoted spelling.
func quotingBugs() []Bug {
	return []Bug{
		{
			Name: "quoted-key-500", Description: "A key in quotes, which is the draft's own spelling, is answered 500.",
			Cases: []string{"key/sf-string-accepted"},
			change: mutation{intercept: func(s *Server, x *exchange) *answer {
				return failure(s, strings.HasPrefix(rawKey(x), `"`))
			}},
		}, {
			Name: "malformed-quotes-accepted", Description: "A quoted key that does not end, or has garbage behind it, is taken as it is.",
			Cases: []string{"key/malformed-sf-rejected"},
			change: mutation{read: func(_ *Server, x *exchange) reading {
				if raw := rawKey(x); x.key.err != nil && strings.HasPrefix(raw, `"`) && len(raw) > 2 {
					return reading{key: raw, present: true}
				}
				return x.key
			}},
		}, {
			Name: "parameters-in-key", Description: "The parameters behind a quoted key are part of the key.",
			Cases: []string{"key/sf-parameters-ignored"},
			change: mutation{read: func(_ *Server, x *exchange) reading {
				if raw := rawKey(x); x.key.err == nil && strings.HasPrefix(raw, `"`) {
					return reading{key: strings.ReplaceAll(raw, `"`, ""), present: true}
				}
				return x.key
			}},
		},
	}
}

// boundBugs take what is no key.
func boundBugs() []Bug {
	return []Bug{
		{
			Name: "invalid-key-500", Description: "A key outside the bounds is answered 500.",
			Cases: []string{"key/invalid-is-4xx"},
			change: mutation{intercept: func(s *Server, x *exchange) *answer {
				return failure(s, x.key.err != nil)
			}},
		}, {
			Name: "invalid-key-executed", Description: "A key outside the bounds is dropped, and the request executed without protection.",
			Cases: []string{"key/invalid-not-executed"},
			change: mutation{read: func(_ *Server, x *exchange) reading {
				if x.key.err != nil {
					return reading{}
				}
				return x.key
			}},
		}, {
			Name: "long-key-accepted", Description: "A key of any length is accepted.",
			Cases: []string{"key/5000-rejected-4xx"},
			change: mutation{read: func(_ *Server, x *exchange) reading {
				if raw := rawKey(x); x.key.err != nil && len(raw) > 255 {
					return reading{key: raw, present: true}
				}
				return x.key
			}},
		},
	}
}

// rawKey is the first key header as it stands, whatever its name in the profile.
func rawKey(x *exchange) string {
	return strings.TrimSpace(x.r.Header.Get(x.carrier))
}

// bare reads a raw or quoted key.
func bare(text string) (string, error) { return parseKey(text, "") }

// remade turns every valid key into another.
func remade(change func(string) string) mutation {
	return mutation{read: func(_ *Server, x *exchange) reading {
		k := x.key
		if k.err == nil {
			k.key = change(k.key)
		}
		return k
	}}
}

func lettersAndDigits(key string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' {
			return r
		}
		return -1
	}, key)
}

// strangersToo drops the principal from keys that begin so.
func strangersToo(prefix string) func(*exchange, []string) []string {
	return func(x *exchange, parts []string) []string {
		if strings.HasPrefix(x.key.key, prefix) {
			return parts[len(parts)-1:]
		}
		return parts
	}
}

// failure is a 500 if the condition holds.
func failure(s *Server, holds bool) *answer {
	if !holds {
		return nil
	}
	return problem(s.cfg.Profile, http.StatusInternalServerError, "the server failed", "")
}
