//! The rules of lint, with their reasons.

/// How much a finding matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LintSeverity {
    /// A provider refuses the tool, or it is unsafe.
    Error,
    /// A model is likely to use the tool wrongly.
    Warning,
    /// It could be better.
    Note,
}

impl LintSeverity {
    pub const ALL: [Self; 3] = [Self::Error, Self::Warning, Self::Note];

    pub fn word(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warning => "warning",
            Self::Note => "note",
        }
    }
}

/// A rule of lint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum LintRule {
    HiddenCharacters,
    ModelInstructions,
    InvalidSchema,
    UnresolvableRef,
    RefusedName,
    DuplicateName,
    WriteMarkedReadOnly,
    RefusedSchema,
    CollidingNames,
    MissingDescription,
    SimilarDescriptions,
    UntypedArgument,
    HeavyTool,
    HeavySurface,
    UndescribedArgument,
    EnumInProse,
}

impl LintRule {
    pub const ALL: [Self; 16] = [
        Self::HiddenCharacters,
        Self::ModelInstructions,
        Self::InvalidSchema,
        Self::UnresolvableRef,
        Self::RefusedName,
        Self::DuplicateName,
        Self::WriteMarkedReadOnly,
        Self::RefusedSchema,
        Self::CollidingNames,
        Self::MissingDescription,
        Self::SimilarDescriptions,
        Self::UntypedArgument,
        Self::HeavyTool,
        Self::HeavySurface,
        Self::UndescribedArgument,
        Self::EnumInProse,
    ];

    /// The rule with this id.
    pub fn parse(id: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|rule| rule.id() == id)
    }

    pub fn id(self) -> &'static str {
        self.facts().0
    }

    pub fn severity(self) -> LintSeverity {
        self.facts().1
    }

    /// Why the rule exists, as one sentence.
    pub fn reason(self) -> &'static str {
        self.facts().2
    }

    fn facts(self) -> (&'static str, LintSeverity, &'static str) {
        use LintSeverity::{Error, Note, Warning};
        match self {
            Self::HiddenCharacters => (
                "hidden-characters",
                Error,
                "A model reads characters that people don't see: they can carry instructions, or make a name look like another one.",
            ),
            Self::ModelInstructions => (
                "model-instructions",
                Error,
                "A description that gives orders to the model, such as to ignore its instructions, to hide something from the user or to read keys, is how tools are poisoned.",
            ),
            Self::InvalidSchema => (
                "invalid-schema",
                Error,
                "Clients and providers refuse a tool whose schema is missing or is not valid JSON Schema.",
            ),
            Self::UnresolvableRef => (
                "unresolvable-ref",
                Error,
                "A `$ref` to a definition that does not exist, or to another document, can't be followed by clients and providers.",
            ),
            Self::RefusedName => (
                "refused-name",
                Error,
                "Some providers refuse names with other characters than letters, digits, `_` and `-`, or with more than 64 of them, and with the name the whole request.",
            ),
            Self::DuplicateName => (
                "duplicate-name",
                Error,
                "A call names its tool; if a server lists a name twice, one of the tools can't be called.",
            ),
            Self::WriteMarkedReadOnly => (
                "write-marked-read-only",
                Error,
                "Clients may call a tool with `readOnlyHint` without asking the user; the name says that this one changes something.",
            ),
            Self::RefusedSchema => (
                "refused-schema",
                Warning,
                "Some providers accept only a part of JSON Schema: type `object` without `anyOf`, `oneOf`, `allOf`, `enum` or `not` at the top, arrays with `items`, and argument names of up to 64 letters, digits, `_`, `.` and `-`.",
            ),
            Self::CollidingNames => (
                "colliding-names",
                Warning,
                "Tools of different servers with the same name, or names that differ only in case, `_` and `-`, are easily confused.",
            ),
            Self::MissingDescription => (
                "missing-description",
                Warning,
                "A model chooses a tool by its description.",
            ),
            Self::SimilarDescriptions => (
                "similar-descriptions",
                Warning,
                "A model can't choose between tools whose descriptions say the same.",
            ),
            Self::UntypedArgument => (
                "untyped-argument",
                Warning,
                "Without a type, a model guesses between text, number and list.",
            ),
            Self::UndescribedArgument => (
                "undescribed-argument",
                Note,
                "A model guesses what to pass if neither the argument, nor a part of it, nor the tool describes it.",
            ),
            Self::HeavyTool => (
                "heavy-tool",
                Warning,
                "Every model request carries the definition of every tool; one tool with more than 1,500 estimated tokens is expensive.",
            ),
            Self::HeavySurface => (
                "heavy-surface",
                Warning,
                "All tools together cost more than 12,000 estimated tokens in every model request, and models choose worse among many tools.",
            ),
            Self::EnumInProse => (
                "enum-in-prose",
                Note,
                "If the description lists the valid values, an `enum` makes sure that a model uses one of them.",
            ),
        }
    }
}
