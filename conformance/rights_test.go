package conformance_test

import (
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"time"
)

// right is a right server that was drawn: its choices, and what it takes for the same.
type right struct {
	choices
	q     quirk
	takes string
}

// drawRights draws n right servers: choices, and freedoms of what is compared.
func drawRights(n int, seed uint64) []right {
	random := rand.New(rand.NewPCG(seed, 1))
	variants := allVariants()
	var all []right
	for range n {
		one := right{choices: variants[random.IntN(len(variants))]}
		one.wait, one.wrapped = random.IntN(2) == 0, random.IntN(8) == 0
		if one.status == http.StatusNoContent || one.keeps { // a failure is not given again as a success
			one.wrapped = false
		}
		one.later = time.Duration(random.IntN(2)*random.IntN(40)) * time.Millisecond
		var covers []func([]string) []string
		for _, f := range []struct {
			name string
			same func([]string) []string
		}{
			{"values", bodyAs(valuesAs(func(_ int, value any) any { return value }))},
			{"null as absent", bodyAs(valuesAs(func(_ int, value any) any {
				if members, isObject := value.(map[string]any); isObject {
					for name, member := range members {
						if member == nil {
							delete(members, name)
						}
					}
				}
				return value
			}))},
			{"any query", func(parts []string) []string { return []string{parts[0], parts[1], "", parts[3]} }},
		} {
			if random.IntN(3) == 0 {
				covers = append(covers, f.same)
				one.takes += f.name + "; "
			}
		}
		one.q.covers = func(_ *call, parts []string) []string {
			for _, same := range covers {
				parts = same(slices.Clone(parts))
			}
			return parts
		}
		if random.IntN(3) == 0 {
			one.takes += "keys in any case; "
			one.q.key = func(_ *call, k labelled) labelled {
				if len(k.key) == 36 && strings.Count(k.key, "-") == 4 {
					k.key = strings.ToLower(k.key)
				}
				return k
			}
		}
		all = append(all, one)
	}
	return all
}
