package mockserver_test

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/oncehttp/oncehttp/mockserver"
)

// The answer to the first send is lost, though the effect has happened; the
// second send, with the same key and bytes, is given the stored answer.
func Example() {
	server := mockserver.New(mockserver.Config{
		Script: []mockserver.Fault{{Kind: mockserver.DropAfter}},
	})
	defer server.Close()
	pipe := server.Pipe()
	client := &http.Client{Transport: pipe.Transport()}
	for range 2 {
		req, err := http.NewRequest(http.MethodPost, pipe.URL+"/payments", strings.NewReader(`{"amount":100}`))
		if err != nil {
			fmt.Println(err)
			return
		}
		req.Header.Set("Idempotency-Key", "order-7")
		response, err := client.Do(req)
		if err != nil {
			fmt.Println("no answer")
			continue
		}
		response.Body.Close()
		fmt.Println(response.StatusCode, "replayed:", response.Header.Get("Idempotent-Replayed"))
	}
	fmt.Println("sends:", server.Ledger().Sends("order-7"), "effects:", server.Ledger().Effects("order-7"))
	// Output:
	// no answer
	// 201 replayed: true
	// sends: 2 effects: 1
}

// A mix of faults, as the command takes it.
func ExampleParseFaults() {
	mix, err := mockserver.ParseFaults("drop-after=0.2,503:2=0.1")
	fmt.Println(len(mix), mix[1].Fault.Status, mix[1].Fault.RetryAfter, err)
	_, err = mockserver.ParseFaults("drop-after=0.9,reset=0.2")
	fmt.Println(err)
	// Output:
	// 2 503 2 <nil>
	// mockserver: the probabilities add up to 1.1, which is more than 1
}
