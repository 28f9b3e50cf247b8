package known

import (
	"slices"
	"sync"
)

// The bounds of Recipes.
const (
	recipesOwn      = 64    // recipes of this process
	recipesAccounts = 1_000 // accounts
	recipesEach     = 16    // recipes of one account
)

// Recipes keeps the recipes (persist.Record.Recipe) of a journal used by this process only. A request without a key
// must not repeat an operation recorded by one of them. They are the recipes of the process's own operations, and for
// each account those of earlier operations. The zero value is ready; it is safe for concurrent use.
type Recipes struct {
	mu      sync.Mutex
	own     []string            // of this process's operations
	overrun bool                // there are more than recipesOwn
	read    map[string][]string // by account: of earlier operations
}

// Use notes a recipe (the rules by which a request's fingerprint is made) of an operation that this process begins. Past recipesOwn of them it only notes that
// there are more: then they have to be read from the journal.
func (r *Recipes) Use(recipe string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.overrun || slices.Contains(r.own, recipe):
	case len(r.own) == recipesOwn:
		r.overrun = true
	default:
		r.own = append(r.own, recipe)
	}
}

// Of returns the recipes, the rules for fingerprints, of an account's operations: a request without a key is compared by each.
// known is false if some have to be read from the journal.
func (r *Recipes) Of(account string) (recipes []string, known bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	read, known := r.read[account]
	recipes = slices.Clone(r.own)
	for _, recipe := range read {
		if !slices.Contains(recipes, recipe) {
			recipes = append(recipes, recipe)
		}
	}
	return recipes, known && !r.overrun // overrun: this process has begun operations with more than were noted
}

// Read notes the recipes (rules for fingerprints) of an account's operations in the journal, as read by the caller. More than recipesEach
// are not kept: Of then says that they have to be read again. If there are recipesAccounts accounts, all others are forgotten first.
func (r *Recipes) Read(account string, recipes []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.read == nil || len(r.read) >= recipesAccounts {
		r.read = map[string][]string{}
	}
	if len(recipes) <= recipesEach {
		r.read[account] = recipes
	}
}
