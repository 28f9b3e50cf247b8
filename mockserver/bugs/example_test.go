package bugs_test

import (
	"fmt"

	"github.com/oncehttp/oncehttp/mockserver"
	"github.com/oncehttp/oncehttp/mockserver/bugs"
)

// Each entry of the catalogue names a server.
func ExampleFind() {
	bug, err := bugs.Find("keys-ignored")
	if err != nil {
		fmt.Println(err)
		return
	}
	server := mockserver.New(mockserver.Config{Bug: bug.Name})
	defer server.Close()
	fmt.Println(bug.Description)
	// Output: The key has no effect: every request is executed.
}
