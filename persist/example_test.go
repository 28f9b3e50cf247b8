package persist_test

import (
	"fmt"

	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/memory"
)

// counting counts what is begun, and passes on all else.
type counting struct{ persist.Journal }

// Unwrap shows the journal below, for what only some journals can do.
func (c counting) Unwrap() persist.Journal { return c.Journal }

// A journal that wraps another one stays what the other is.
func ExampleAs() {
	_, ok := persist.As[persist.Claimer](counting{memory.New()})
	fmt.Println("leases:", ok)
	// Output: leases: true
}

// A header that selects whose keys these are joins the account.
func ExampleAccount() {
	fmt.Println(persist.Account("shop-7", [2]string{"Stripe-Account", "acct_1"}))
	// Output: shop-7|Stripe-Account=acct_1
}
