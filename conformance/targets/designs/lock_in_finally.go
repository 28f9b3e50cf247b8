package main

import (
	"net/http"
	"time"
)

// lockInFinally returns a server with a known fault, for the suite to find; e.repaired makes it correct. Design: a key in Redis means that the
// operation is at work. The design looks for it, then sets it, and deletes it after the work. So two requests at once may both find nothing, and any
// repeat after the work is executed again.
//
// Repair: the key is taken in one step, and becomes the record of the answer in place of the deletion.
func lockInFinally(e *env) (handler, error) {
	s, err := e.redis()
	return func(c *call) answer {
		if c.key == "" {
			return problem(http.StatusBadRequest, "a key is missing")
		}
		key := s.prefix + "idempotent:" + c.caller + ":" + c.key
		if e.repaired {
			return s.once(c, key, time.Minute, 24*time.Hour)
		}
		ctx := c.Context()
		if found, err := s.Exists(ctx, key).Result(); err != nil {
			return problem(http.StatusInternalServerError, "no Redis")
		} else if found > 0 {
			return message(http.StatusOK, "already done")
		}
		if err := s.Set(ctx, key, "processing", time.Minute).Err(); err != nil {
			return problem(http.StatusInternalServerError, "no Redis")
		}
		defer s.Del(ctx, key)
		return c.work()
	}, err
}
