package known

import (
	"fmt"
	"slices"
	"testing"
)

// TestRecipes: those of this process and those that were read, each once; an account that was not read has to be.
func TestRecipes(t *testing.T) {
	t.Parallel()
	var r Recipes
	r.Use("own")
	r.Use("own")
	if got, known := r.Of("a"); known || !slices.Equal(got, []string{"own"}) {
		t.Errorf("%q, known %v", got, known)
	}
	r.Read("a", []string{"own", "old"})
	r.Use("new")
	if got, known := r.Of("a"); !known || !slices.Equal(got, []string{"own", "new", "old"}) {
		t.Errorf("%q, known %v", got, known)
	}
	if got, known := r.Of("b"); known || !slices.Equal(got, []string{"own", "new"}) {
		t.Errorf("another account: %q, known %v", got, known)
	}
}

// TestRecipesAreBounded: beyond a bound an account is read each time, and nothing that this process uses is forgotten.
func TestRecipesAreBounded(t *testing.T) {
	t.Parallel()
	names := func(n int) (all []string) {
		for i := range n {
			all = append(all, fmt.Sprint(i))
		}
		return all
	}
	for name, n := range map[string]int{"at the bound": 0, "past it": 1} {
		var each, accounts, own Recipes
		each.Read("a", names(recipesEach+n))
		if _, known := each.Of("a"); known == (n > 0) {
			t.Errorf("recipes of an account, %s: known %v", name, known)
		}
		for _, account := range names(recipesAccounts + n) {
			accounts.Read(account, nil)
		}
		if _, known := accounts.Of("0"); known == (n > 0) || len(accounts.read) > recipesAccounts {
			t.Errorf("accounts, %s: known %v, %d are kept", name, known, len(accounts.read))
		}
		own.Read("a", nil)
		for _, recipe := range names(recipesOwn + n) {
			own.Use(recipe)
		}
		if got, known := own.Of("a"); known == (n > 0) || len(got) != recipesOwn {
			t.Errorf("recipes of this process, %s: %d, known %v", name, len(got), known)
		}
	}
}
