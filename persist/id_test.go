package persist

import (
	"slices"
	"testing"
)

// TestAccountParts: whatever an account is built of, it is taken apart into the same, and no two lists give one account.
func TestAccountParts(t *testing.T) {
	t.Parallel()
	lists := [][][2]string{
		nil, {{"", "bob"}}, {{"", ""}}, {{"X-Account", "bob"}}, {{"", "bob"}, {"X-Account", "7"}}, {{"", "X-Account=7"}},
		{{"", "a|b"}}, {{"X", "a=b|c %"}}, {{"X", ""}}, {{"", "é"}},
	}
	seen := map[string]bool{}
	for _, name := range []string{"", "acme", "a|b", "a=b", "a%7Cb", "é ", "%"} {
		for _, scopes := range lists {
			account := Account(name, scopes...)
			gotName, gotScopes := SplitAccount(account)
			if gotName != name || !slices.Equal(gotScopes, scopes) || seen[account] {
				t.Errorf("%q %q give %q (again: %v), which is taken apart into %q %q", name, scopes, account, seen[account], gotName, gotScopes)
			}
			seen[account] = true
		}
	}
}
