// Command fiber serves gofiber/fiber's own idempotency middleware behind the routes of the
// conformance suite. It is a target, and not an example.
package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"log"
	"net"
	"os"
	"strconv"
	"sync"
	"time"

	"github.com/gofiber/fiber/v3"
	"github.com/gofiber/fiber/v3/middleware/idempotency"
	"github.com/gofiber/fiber/v3/middleware/recover"
)

// ledger counts effects by the reference in the body. It is safe for concurrent use.
type ledger struct {
	mu    sync.Mutex
	total int            // with the effects of failures and crashes
	byRef map[string]int // "" for those
}

// effect counts an effect of a reference, such as a payment, and returns its number in the whole process.
func (l *ledger) effect(ref string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.total++
	l.byRef[ref]++
	return l.total
}

// count answers the test suite's question after effects: how many payments with the reference "ref" were made, and how many in all.
func (l *ledger) count(c fiber.Ctx) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return c.JSON(fiber.Map{"count": l.byRef[c.Query("ref")], "total": l.total})
}

// main serves payments with Fiber's middleware for idempotency keys in front, as a target of the test suite.
func main() {
	l := &ledger{byRef: map[string]int{}}
	app := fiber.New()
	app.Use(recover.New())
	app.Get("/_effects", l.count)
	// The header's name is the draft's; the middleware's default is
	// X-Idempotency-Key, which KEY_HEADER can ask for. All else is as it comes.
	app.Use(idempotency.New(idempotency.Config{KeyHeader: cmp.Or(os.Getenv("KEY_HEADER"), "Idempotency-Key")}))
	app.Post("/payments", l.create("payments"))
	app.Post("/refunds", l.create("refunds"))
	app.Post("/payments/:id/cancel", func(c fiber.Ctx) error {
		return c.JSON(fiber.Map{"id": c.Params("id"), "status": "cancelled", "number": l.effect("cancel")})
	})
	listener, err := net.Listen("tcp", cmp.Or(os.Getenv("ADDR"), "127.0.0.1:0"))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("listening on http://" + listener.Addr().String())
	log.Fatal(app.Listener(listener, fiber.ListenConfig{DisableStartupMessage: true}))
}

// create returns the handler for operations of a kind, such as payments. The query makes it slow (sleep, in ms), crash, or fail with a status; a
// crash and a failure count in the total of effects alone, by which a second execution is seen. With empty, the answer has no body. The cookie shows
// whether a repeat is given what belongs to the first caller.
func (l *ledger) create(kind string) fiber.Handler {
	return func(c fiber.Ctx) error {
		var body struct {
			Reference string `json:"reference"`
		}
		if err := json.Unmarshal(c.Body(), &body); err != nil {
			return c.Status(fiber.StatusBadRequest).JSON(fiber.Map{"error": "the body is not a JSON object"})
		}
		if ms, err := strconv.Atoi(c.Query("sleep")); err == nil {
			time.Sleep(time.Duration(ms) * time.Millisecond)
		}
		if c.Query("empty") != "" {
			l.effect(body.Reference)
			return c.SendStatus(fiber.StatusNoContent)
		}
		if c.Query("crash") != "" {
			l.effect("") // seen in the total alone
			panic("this crash was asked for")
		}
		if status, err := strconv.Atoi(c.Query("fail")); err == nil {
			return c.Status(status).JSON(fiber.Map{"error": "asked for", "number": l.effect("")})
		}
		id := fmt.Sprintf("%s_%d", kind, l.effect(body.Reference))
		c.Set("Location", "/"+kind+"/"+id)
		c.Cookie(&fiber.Cookie{Name: "visit", Value: "visit-of-" + id})
		return c.Status(fiber.StatusCreated).JSON(fiber.Map{"id": id, "reference": body.Reference})
	}
}
