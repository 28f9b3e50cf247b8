package oncehttp_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"time"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/persist/memory"
)

// bank is a server that honours keys, loses its first answer, and counts what it
// really did.
func bank(effects *int) *httptest.Server {
	kept := map[string]string{}
	return httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		key := r.Header.Get("Idempotency-Key")
		answer, replay := kept[key]
		if !replay {
			*effects++
			answer = fmt.Sprintf(`{"payment":%d}`, *effects)
			kept[key] = answer
			panic(http.ErrAbortHandler) // paid, and nobody was told
		}
		w.Header().Set("Idempotent-Replayed", "true")
		w.WriteHeader(http.StatusCreated)
		_, _ = io.WriteString(w, answer)
	}))
}

// A payment whose first answer is lost takes effect once.
func ExampleClient_DoKey() {
	effects := 0
	srv := bank(&effects)
	defer srv.Close()
	client, err := oncehttp.New(oncehttp.Config{
		Journal: memory.New(), // a program that pays uses Open, which keeps a file
		Retry:   oncehttp.Policy{MinDelay: time.Millisecond, MaxDelay: time.Millisecond},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.Close()

	orders := oncehttp.NewScope("order")
	req, _ := http.NewRequest("POST", srv.URL+"/payments", strings.NewReader(`{"amount":100}`))
	resp, err := client.DoKey(req, orders.Key("uid123", "order456"))
	switch {
	case err == nil: // the server's final answer, whole
		defer resp.Body.Close()
		body, _ := io.ReadAll(resp.Body)
		res := oncehttp.ResultOf(resp)
		fmt.Println(resp.StatusCode, string(body))
		fmt.Println(res.Key, res.Outcome, res.Source, res.Sends, "sends")
	case errors.Is(err, oncehttp.ErrNoEffect):
		fmt.Println("nothing happened:", err)
	default:
		fmt.Println("go on with the same key:", err)
	}
	fmt.Println("effects:", effects)
	// Output:
	// 201 {"payment":1}
	// idemp:order:uid123:order456 confirmed server replay 2 sends
	// effects: 1
}

// An intention outlives the process that had it: whoever opens the journal next
// sends it, once.
func ExampleClient_Resume() {
	effects := 0
	srv := bank(&effects)
	defer srv.Close()
	journal := memory.New()
	config := oncehttp.Config{Journal: journal, Retry: oncehttp.Policy{MinDelay: time.Millisecond, MaxDelay: time.Millisecond}}
	first, _ := oncehttp.New(config)
	req, _ := http.NewRequest("POST", srv.URL+"/payments", strings.NewReader(`{"amount":100}`))
	fmt.Println("enqueued:", first.Enqueue(req, "idemp:order:7"), "effects:", effects)
	first.Close()

	second, _ := oncehttp.New(config)
	defer second.Close()
	for res, err := range second.Resume(context.Background()) {
		fmt.Println(res.Key, res.Outcome, res.Answer.Status, string(res.Answer.Body), err)
	}
	fmt.Println("effects:", effects)
	// Output:
	// enqueued: <nil> effects: 0
	// idemp:order:7 confirmed 201 {"payment":1} <nil>
	// effects: 1
}

// Code that takes an *http.Client gains the journal, and sees plain HTTP.
func ExampleClient_StandardClient() {
	effects := 0
	srv := bank(&effects)
	defer srv.Close()
	client, _ := oncehttp.New(oncehttp.Config{
		Journal: memory.New(), Retry: oncehttp.Policy{MinDelay: time.Millisecond, MaxDelay: time.Millisecond},
		Operation: oncehttp.Writes, // each POST and PATCH, also without a key of its own
	})
	defer client.Close()
	resp, err := client.StandardClient().Post(srv.URL+"/payments", "application/json", strings.NewReader(`{}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer resp.Body.Close()
	fmt.Println(resp.StatusCode, oncehttp.ResultOf(resp).AlreadyDone, "effects:", effects)
	// Output: 201 false effects: 1
}

// No order of parts, and nothing in a part, makes two businesses share a key.
func ExampleScope_Key() {
	orders := oncehttp.NewScope("order")
	fmt.Println(orders.Key("uid123", "order456"))
	fmt.Println(orders.Key("a:b", "c"))
	fmt.Println(orders.Prefix("shop").Key("7").Generation(2))
	fmt.Printf("%q\n", orders.Key("uid123", "")) // a missing id is no key
	// Output:
	// idemp:order:uid123:order456
	// idemp:order:a%3Ab:c
	// shop:order:7:gen=2
	// ""
}

// A key that names the hour of the event: however often the task is started in
// it, it runs once.
func ExampleTimeBucket() {
	event := time.Date(2024, 3, 30, 10, 42, 0, 0, time.UTC)
	fmt.Println(oncehttp.NewScope("task").Key("uid123", oncehttp.TimeBucket(event, time.Hour)))
	// Output: idemp:task:uid123:20240330T10
}

// A service that is called with a key calls the next one with a child of it, so
// that the whole chain stays idempotent.
func ExampleInheritKey() {
	handler := oncehttp.InheritKey(func(*http.Request) string { return "alice" })(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		parent := oncehttp.InheritedKey(r.Context())
		charge, again := parent.Derive("charge"), parent.Derive("charge")
		fmt.Println(charge == again, charge == parent.Derive("ship"))
	}))
	req := httptest.NewRequest("POST", "/orders", nil)
	req.Header.Set("Idempotency-Key", "from-the-shop")
	handler.ServeHTTP(httptest.NewRecorder(), req)
	// Output: true false
}

// Every error matches exactly one of ErrNoEffect and ErrOutcomeUnknown.
func ExampleError() {
	client, _ := oncehttp.New(oncehttp.Config{Journal: memory.New()})
	defer client.Close()
	req, _ := http.NewRequest("POST", "https://api.example.com/payments", nil)
	_, err := client.DoKey(req, "")
	var e *oncehttp.Error
	if errors.As(err, &e) {
		fmt.Println(e)
		fmt.Println(errors.Is(err, oncehttp.ErrNoEffect), errors.Is(err, oncehttp.ErrKeyInvalid), e.Sends)
	}
	// Output:
	// oncehttp: do: no effect, invalid key: the key is empty
	// true true 0
}

// An intention that is durable before anything is sent: Run, here or in a later process, sends it.
func ExampleClient_Enqueue() {
	effects := 0
	srv := bank(&effects)
	defer srv.Close()
	client, _ := oncehttp.New(oncehttp.Config{Journal: memory.New()})
	defer client.Close()
	req, _ := http.NewRequest("POST", srv.URL+"/payments", strings.NewReader(`{}`))
	fmt.Println("enqueued:", client.Enqueue(req, oncehttp.NewScope("order").Key("7")), "effects:", effects)
	for res, err := range client.Resume(context.Background()) {
		fmt.Println(res.Key, res.Outcome, err, "effects:", effects)
	}
	// Output:
	// enqueued: <nil> effects: 0
	// idemp:order:7 confirmed <nil> effects: 1
}

// An operator looked at the server and says what became of an operation that nobody knows of.
func ExampleClient_Settle() {
	lost := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }))
	defer lost.Close()
	client, _ := oncehttp.New(oncehttp.Config{Journal: memory.New(), Retry: oncehttp.Policy{MaxAttempts: 1}})
	defer client.Close()
	key := oncehttp.NewScope("order").Key("7")
	req, _ := http.NewRequest("POST", lost.URL, strings.NewReader(`{}`))
	_, err := client.DoKey(req, key)
	fmt.Println("unknown:", errors.Is(err, oncehttp.ErrOutcomeUnknown))
	rec, _ := client.Lookup(context.Background(), key) // before the bank's list is read
	absent := oncehttp.Resolution{Effect: oncehttp.EffectAbsent, Note: "not in the bank's list"}
	err = client.Settle(context.Background(), key, absent, oncehttp.AsSeen(rec)) // ErrStale if a worker has sent it since
	rec, _ = client.Lookup(context.Background(), key)
	fmt.Println(err, rec.State, rec.Effect, rec.Note)
	fmt.Println("tried anew as", key.Generation(2))
	// Output:
	// unknown: true
	// <nil> settled absent not in the bank's list
	// tried anew as idemp:order:7:gen=2
}

// The order's id, which stands in every request, makes the key.
func ExampleKeyFromJSON() {
	makeKey := oncehttp.KeyFromJSON(oncehttp.NewScope("order"), "/order/id") // for Config.NewKey
	req, _ := http.NewRequest("POST", "https://api.example.com/payments", strings.NewReader(`{"order":{"id":7},"amount":100}`))
	fmt.Println(makeKey(req))
	req, _ = http.NewRequest("POST", "https://api.example.com/payments", strings.NewReader(`{"amount":100}`))
	_, err := makeKey(req)
	fmt.Println(err)
	// Output:
	// idemp:order:7 <nil>
	// no key for this request: the body has no value at /order/id that a key could be made of
}

// A message of a partitioned log is named by its place: however often it is delivered, it is one operation.
func ExampleScope_Key_message() {
	key := func(topic string, partition int32, offset int64) oncehttp.Key {
		return oncehttp.NewScope("topic").Key(topic, strconv.Itoa(int(partition)), strconv.FormatInt(offset, 10))
	}
	fmt.Println(key("orders", 3, 42))
	fmt.Println(key("orders", 3, 42) == key("orders", 34, 2))
	// Output:
	// idemp:topic:orders:3:42
	// false
}

// An event is named by its aggregate and its number there.
func ExampleScope_Key_event() {
	fmt.Println(oncehttp.NewScope("event").Key("account", "acc_7", strconv.Itoa(12)))
	// Output: idemp:event:account:acc_7:12
}

// A scheduled run is named by the period that it was due in, so that a run which starts late, or twice, is the same one.
func ExampleTimeBucket_schedule() {
	due := time.Date(2026, 11, 1, 2, 0, 0, 0, time.UTC)
	late := due.Add(5 * time.Hour)
	key := func(t time.Time) oncehttp.Key {
		return oncehttp.NewScope("billing").Key("cus_9", oncehttp.TimeBucket(t, 24*time.Hour))
	}
	fmt.Println(key(due), key(due) == key(late))
	// Output: idemp:billing:cus_9:20261101 true
}

// A form is named when it is shown: the value stands in a hidden field, so that a second click sends the same key.
func ExampleScope_Key_form() {
	shown := "f3b1c0de" // made once, with the page
	first, second := oncehttp.NewScope("form").Key(shown), oncehttp.NewScope("form").Key(shown)
	fmt.Println(first, first == second)
	// Output: idemp:form:f3b1c0de true
}

// A declined payment is final. The next try of the same order is another operation.
func ExampleKey_Generation() {
	order := oncehttp.NewScope("order").Key("u1", "o7")
	fmt.Println(order.Generation(1), order.Generation(2))
	// Output: idemp:order:u1:o7 idemp:order:u1:o7:gen=2
}

// A key for an API that takes UUIDs only.
func ExampleKey_UUID() {
	order := oncehttp.NewScope("order").Key("u1", "o7")
	fmt.Println(order.UUID() == oncehttp.NewScope("order").Key("u1", "o7").UUID(), len(order.UUID()))
	// Output: true 36
}
