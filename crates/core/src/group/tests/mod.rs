mod budgets;
mod causes;
mod construction;
mod decisions;
mod hostile;
mod replacement;
mod timelines;
mod world;
