"""Recipe: Hugging Face causal language models, trained from scratch, fine-tuned, or with LoRA."""
