package settings

// Console holds the settings of the console.
type Console struct {
	On bool `env:"-"`
	// Announce makes the log name the address of the console. It is not a setting: the command that
	// serves sets it, if its log is a terminal.
	Announce bool `env:"-"`
}

func (s *Settings) consoleBindings() []binding {
	return []binding{
		s.bind(&s.Console.On, "CONSOLE", "on", "on, or off: there are no pages below /console/").as("text",
			oneOf(&s.Console.On, "on", "off")),
	}
}
