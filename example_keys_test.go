package oncehttp_test

import (
	"fmt"
	"strconv"
	"time"

	"github.com/oncehttp/oncehttp"
)

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
