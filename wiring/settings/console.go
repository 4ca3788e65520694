package settings

// Console holds the settings of the console.
type Console struct {
	On bool `env:"-"`
	// Announce makes the log name the address of the console. It is not a setting: the command that
	// serves sets it, if its log is a terminal.
	Announce bool `env:"-"`
}

// Administration holds the settings of the administration API.
type Administration struct {
	On bool `env:"-"`
}

func (s *Settings) consoleBindings() []binding {
	return []binding{
		s.bind(&s.Administration.On, "ADMIN_API", "on", "on, or off: there is nothing below /admin/v1").as("text",
			oneOf(&s.Administration.On, "on", "off")),
		s.bind(&s.Console.On, "CONSOLE", "on", "on, or off: there are no pages below /console/").as("text",
			oneOf(&s.Console.On, "on", "off")),
	}
}
