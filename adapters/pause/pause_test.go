package pause_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tollgate-dev/tollgate/adapters/pause"
)

func TestFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		if !pause.For(t.Context(), time.Hour) || time.Since(began) != time.Hour {
			t.Errorf("the whole time is an hour, waited %v", time.Since(began))
		}
		if !pause.For(t.Context(), -time.Second) {
			t.Error("time that has passed is not whole")
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		began = time.Now()
		if pause.For(ctx, time.Hour) || time.Since(began) != time.Minute {
			t.Errorf("the context lasts a minute, waited %v", time.Since(began))
		}
	})
}
