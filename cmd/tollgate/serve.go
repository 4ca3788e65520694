package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/tollgate-dev/tollgate/wiring"
	"github.com/tollgate-dev/tollgate/wiring/settings"
)

func newServe(p process) *cobra.Command {
	var only []string
	c := &cobra.Command{
		Use:   "serve",
		Short: "Run the service",
		Long: "Run the service, by default with all its parts, and with embedded storage unless\n" +
			"the settings name other servers. SIGTERM drains the service; a second signal\n" +
			"ends it at once.",
		Example: "  tollgate serve\n" +
			"  DATABASE_URL=postgres://tollgate@localhost/tollgate KVSTORE_URL=localhost:6379 tollgate serve\n" +
			"  tollgate serve --only ratelimit",
		Args: cobra.NoArgs,
	}
	c.Flags().StringSliceVar(&only, "only", nil, "run only these parts: registry, auth, methods, ratelimit, console")
	completeValues(c, "only", "registry", "auth", "methods", "ratelimit", "console")
	c.RunE = func(c *cobra.Command, _ []string) error {
		parts, err := settings.ParseParts(only)
		if err != nil {
			return err
		}
		s, err := settings.ReadParts(p.environ, only)
		if err != nil {
			return err
		}
		return serve(c.Context(), p, s, parts)
	}
	return c
}

// serve runs the service until ctx ends, which happens at the first signal, and then drains it. A
// second signal ends the process at once.
func serve(ctx context.Context, p process, s settings.Settings, parts settings.Parts) error {
	relaxGarbageCollection(p.environ)
	log := wiring.NewLog(s.Service, p.stderr)
	s.Console.Announce = isTerminal(p.stderr)
	service, cleanup, err := wiring.Open(ctx, s, parts, buildInfo(), log)
	if err != nil {
		return fmt.Errorf("start: %w", err)
	}
	defer cleanup()
	go func() {
		<-ctx.Done()
		second := make(chan os.Signal, 1)
		signal.Notify(second, syscall.SIGINT, syscall.SIGTERM)
		<-second
		log.Error("second signal: exiting at once")
		os.Exit(exitFailed)
	}()
	if err := service.Run(ctx); err != nil {
		return fmt.Errorf("serve: %w", err)
	}
	return nil
}
